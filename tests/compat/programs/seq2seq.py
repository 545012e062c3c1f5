"""An encoder and a decoder with attention, step by step, on one pair of sentences at a time."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from _common import fill, integers
from torch import optim

device = torch.device("cpu")


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size)

    def forward(self, input, hidden):
        embedded = self.embedding(input).view(1, 1, -1)
        return self.gru(embedded, hidden)

    def initHidden(self):
        return torch.zeros(1, 1, self.hidden_size, device=device)


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size, max_length=6):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attn = nn.Linear(hidden_size * 2, max_length)
        self.attn_combine = nn.Linear(hidden_size * 2, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, input, hidden, encoder_outputs):
        embedded = self.embedding(input).view(1, 1, -1)
        attn_weights = F.softmax(self.attn(torch.cat((embedded[0], hidden[0]), 1)), dim=1)
        attn_applied = torch.bmm(attn_weights.unsqueeze(0), encoder_outputs.unsqueeze(0))
        output = torch.cat((embedded[0], attn_applied[0]), 1)
        output = F.relu(self.attn_combine(output).unsqueeze(0))
        output, hidden = self.gru(output, hidden)
        return F.log_softmax(self.out(output[0]), dim=1), hidden, attn_weights


def losses():
    encoder, decoder = fill(EncoderRNN(7, 5), 3, 0.4), fill(AttnDecoderRNN(5, 7), 4, 0.4)
    optimizers = [optim.SGD(m.parameters(), lr=0.05) for m in (encoder, decoder)]
    criterion, found = nn.NLLLoss(), []
    for step in range(4):
        source = torch.tensor(integers(7, 5, seed=step), dtype=torch.long, device=device).view(-1, 1)
        target = torch.tensor(integers(7, 4, seed=step + 9), dtype=torch.long, device=device).view(-1, 1)
        for o in optimizers:
            o.zero_grad()
        hidden = encoder.initHidden()
        outputs = torch.zeros(6, encoder.hidden_size, device=device)
        for ei in range(source.size(0)):
            out, hidden = encoder(source[ei], hidden)
            outputs[ei] = out[0, 0]
        loss, decoder_input = 0, torch.tensor([[0]], device=device)
        for di in range(target.size(0)):
            output, hidden, attention = decoder(decoder_input, hidden, outputs)
            loss += criterion(output, target[di])
            if step % 2:
                decoder_input = target[di]
            else:
                topv, topi = output.topk(1)
                decoder_input = topi.squeeze().detach()
        loss.backward()
        for o in optimizers:
            o.step()
        found.append(loss.item() / target.size(0))
    return found + attention.data[0].tolist()[:2]
