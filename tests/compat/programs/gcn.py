"""Graph convolution over a dense, normalised adjacency matrix, with weights made by hand."""
import math

import torch
import torch.nn.functional as F
from _common import fill, integers, numbers
from torch.nn.modules import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.spmm(adj, support) if hasattr(torch, "spmm_") else torch.mm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return self.__class__.__name__ + " (" + str(self.in_features) + " -> " + str(self.out_features) + ")"


class GCN(Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.gc1, self.gc2 = GraphConvolution(nfeat, nhid), GraphConvolution(nhid, nclass, bias=False)

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, 0.5, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def losses():
    edges = torch.tensor(integers(7, 2, 12))
    adj = torch.zeros(7, 7)
    adj[edges[0], edges[1]] = 1.0
    adj = torch.max(adj, adj.t()) + torch.eye(7)
    adj = adj / adj.sum(1, keepdim=True)
    labels = torch.LongTensor(integers(3, 7).tolist())
    idx_train = torch.arange(5)
    model = fill(GCN(4, 6, 3)).eval()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    features, found = torch.from_numpy(numbers(7, 4)), []
    for _ in range(5):
        optimizer.zero_grad()
        output = model(features, adj)
        loss = F.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    preds = output.max(1)[1].type_as(labels)
    return found + [preds.eq(labels).double().sum().item() / len(labels)]
