"""Skip-gram with negative samples."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from _common import fill, integers
from torch.autograd import Variable


class SkipGram(nn.Module):
    def __init__(self, emb_size, emb_dimension):
        super().__init__()
        self.u_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        self.v_embeddings = nn.Embedding(emb_size, emb_dimension, sparse=True)
        initrange = 0.5 / emb_dimension
        self.u_embeddings.weight.data.uniform_(-initrange, initrange)
        self.v_embeddings.weight.data.uniform_(-0, 0)

    def forward(self, pos_u, pos_v, neg_v):
        emb_u, emb_v = self.u_embeddings(pos_u), self.v_embeddings(pos_v)
        score = torch.mul(emb_u, emb_v).squeeze()
        score = F.logsigmoid(torch.sum(score, dim=1))
        neg_score = torch.bmm(self.v_embeddings(neg_v), emb_u.unsqueeze(2)).squeeze()
        neg_score = F.logsigmoid(-1 * neg_score)
        return -1 * (torch.sum(score) + torch.sum(neg_score))


def losses():
    model = SkipGram(9, 5)
    fill(model, scale=0.5)
    optimizer, found = optim.Adagrad(model.parameters(), lr=0.1), []
    for i in range(5):
        pos_u, pos_v = (Variable(torch.LongTensor(integers(9, 6, seed=10 * i + k).tolist())) for k in (0, 1))
        neg_v = torch.LongTensor(integers(9, 6, 3, seed=70 + i).tolist())
        optimizer.zero_grad()
        loss = model(pos_u, pos_v, neg_v)
        loss.backward()
        optimizer.step()
        found.append(loss.data.item())
    emb = model.u_embeddings.weight.cpu().data.numpy()
    return found + [float(emb.sum()), torch.dist(*model.u_embeddings.weight[:2]).item()]
