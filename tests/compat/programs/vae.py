"""A variational autoencoder with fixed noise."""
import torch
from _common import fill, numbers
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(12, 10)
        self.fc21, self.fc22 = nn.Linear(10, 3), nn.Linear(10, 3)
        self.fc3, self.fc4 = nn.Linear(3, 10), nn.Linear(10, 12)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.from_numpy(numbers(*std.shape, seed=5)).to(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 12))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 12), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def losses():
    model = fill(VAE())
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    x = torch.sigmoid(torch.from_numpy(numbers(8, 3, 4)))
    found = []
    for _ in range(6):
        optimizer.zero_grad()
        loss = loss_function(model(x)[0], x, *model(x)[1:])
        loss.backward()
        found.append(loss.item())
        optimizer.step()
    return found
