"""A recurrent network of characters: truncated backpropagation through time, one-hot inputs, a cell by hand."""
import torch
import torch.nn as nn
from _common import fill

TEXT = "hello world, hold the door"
CHARS = sorted(set(TEXT))


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.cell = nn.LSTMCell(hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)
        self.softmax = nn.LogSoftmax(dim=1)

    def forward(self, input, state):
        h, c = state
        h, c = self.cell(torch.tanh(self.i2h(torch.cat([input, h], 1))), (h, c))
        return self.softmax(self.h2o(h)), (h, c)

    def init_hidden(self, batch):
        weight = next(self.parameters()).data
        return weight.new_zeros(batch, self.hidden_size), weight.new(batch, self.hidden_size).zero_()


def letter_to_tensor(letter):
    tensor = torch.zeros(1, len(CHARS))
    tensor[0][CHARS.index(letter)] = 1
    return tensor


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def losses():
    model, found = fill(RNN(len(CHARS), 12, len(CHARS)), scale=0.3), []
    criterion, state = nn.NLLLoss(), model.init_hidden(1)
    for start in range(0, 20, 5):
        state = repackage_hidden(state)
        model.zero_grad()
        loss = 0
        for a, b in zip(TEXT[start:start + 5], TEXT[start + 1:start + 6]):
            output, state = model(letter_to_tensor(a), state)
            loss += criterion(output, torch.tensor([CHARS.index(b)]))
        loss.backward()
        for p in model.parameters():
            p.data.add_(p.grad.data, alpha=-0.2)
        found.append(loss.item() / 5)
    model.eval()
    return found + [output.exp().max().item(), output.topk(2)[0][0, 1].item()]
