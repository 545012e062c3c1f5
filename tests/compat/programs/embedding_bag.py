"""Classes of short texts by the mean of their words, and a linear layer."""
import torch
from _common import fill, integers
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    def __init__(self):
        self.items = [(int(i % 3), integers(12, 3 + i % 4, seed=i)) for i in range(12)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def collate_batch(batch):
    label_list, text_list, offsets = [], [], [0]
    for label, text in batch:
        label_list.append(label)
        processed = torch.tensor(text, dtype=torch.int64)
        text_list.append(processed)
        offsets.append(processed.size(0))
    return torch.tensor(label_list, dtype=torch.int64), torch.cat(text_list), torch.tensor(offsets[:-1]).cumsum(dim=0)


class TextClassificationModel(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, sparse=False)
        self.fc = nn.Linear(embed_dim, num_class)
        self.init_weights()

    def init_weights(self):
        self.embedding.weight.data.uniform_(-0.5, 0.5)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


def losses():
    model = fill(TextClassificationModel(12, 8, 3))
    loader = DataLoader(Texts(), batch_size=4, shuffle=False, collate_fn=collate_batch)
    optimizer, criterion, found = torch.optim.SGD(model.parameters(), lr=1.0), nn.CrossEntropyLoss(), []
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    for _ in range(2):
        for label, text, offsets in loader:
            optimizer.zero_grad()
            loss = criterion(model(text, offsets), label)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
            optimizer.step()
            found.append(loss.item())
        scheduler.step()
    return found
