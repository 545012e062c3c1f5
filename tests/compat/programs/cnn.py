"""A network for images: convolutions, pooling, an averaged head, labels smoothed."""
import torch
from _common import fill, integers, numbers
from torch import nn, optim


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, kernel_size=3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, stride=1, padding=1, groups=2), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool2d((1, 1)),
        )
        self.classifier = nn.Linear(16, 5)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                n = m.kernel_size[0] * m.kernel_size[1] * m.out_channels
                m.weight.data.normal_(0, (2.0 / n) ** 0.5)
                m.bias.data.zero_()

    def forward(self, x):
        x = self.features(x)
        return self.classifier(torch.flatten(x, 1))


def losses():
    model = fill(ConvNet(), scale=0.3)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.98))
    x, y = torch.from_numpy(numbers(6, 3, 8, 8)), torch.from_numpy(integers(5, 6))
    found = []
    for _ in range(6):
        optimizer.zero_grad(set_to_none=True)
        output = model(x)
        loss = criterion(output, y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    _, predicted = torch.max(output.data, 1)
    return found + [(predicted == y).float().mean().item()]
