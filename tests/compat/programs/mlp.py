"""A perceptron with dropout off, a schedule, weight decay, and clipping."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from _common import fill, integers, numbers
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, inputs, hidden, classes):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, hidden, bias=False)
        self.fc3 = nn.Linear(hidden, classes)
        self.dropout = nn.Dropout(p=0.5, inplace=True)

    def forward(self, x):
        x = x.view(x.size(0), -1)
        x = F.relu(self.fc1(x), inplace=True)
        x = self.dropout(x)
        x = torch.tanh(self.fc2(x))
        return F.log_softmax(self.fc3(x), dim=1)


def losses():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = fill(Net(2 * 5, 16, 4)).to(device)
    loader = DataLoader(TensorDataset(torch.from_numpy(numbers(24, 2, 5)), torch.tensor(integers(4, 24))), batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-3, nesterov=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    model.eval()
    found = []
    for epoch in range(3):
        for data, target in loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            found.append(loss.item())
        scheduler.step()
    with torch.no_grad():
        correct = 0
        for data, target in loader:
            correct += model(data).argmax(dim=1, keepdim=True).eq(target.view_as(model(data).argmax(1))[:, None]).sum().item()
    return found + [correct / 24]
