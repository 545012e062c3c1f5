"""A classifier of sentences of several lengths: LSTM in two directions, padding, packed by a mask."""
import torch
import torch.nn as nn
from _common import fill, integers
from torch.nn.utils.rnn import pad_sequence


class LSTMText(nn.Module):
    def __init__(self, vocab, emb, hidden, classes):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=0)
        self.lstm = nn.LSTM(emb, hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=0.0)
        self.fc = nn.Linear(hidden * 2, classes)

    def forward(self, text, lengths):
        output, (hidden, cell) = self.lstm(self.embedding(text))
        mask = (torch.arange(text.shape[1])[None, :] < lengths[:, None]).unsqueeze(-1)
        pooled = (output * mask).sum(dim=1) / lengths.unsqueeze(1).float()
        return self.fc(pooled) + 0.1 * self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1)), cell


def losses():
    sentences = [torch.tensor(integers(9, n, seed=n) + 1) for n in (5, 3, 7, 4)]
    lengths = torch.LongTensor([len(s) for s in sentences])
    batch = pad_sequence(sentences, batch_first=True)
    target = torch.tensor([0, 1, 1, 0])
    model = fill(LSTMText(10, 6, 5, 2), scale=0.4)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
    found = []
    for _ in range(5):
        optimizer.zero_grad()
        logits, _ = model(batch, lengths)
        loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))(logits, target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found + [model.embedding.weight[0].abs().sum().item()]
