"""A vision transformer: patches by unfold, a class token, positions, attention written by hand."""
import torch
from _common import fill, integers, numbers
from torch import nn


def pair(t):
    return t if isinstance(t, tuple) else (t, t)


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class Attention(nn.Module):
    def __init__(self, dim, heads=2, dim_head=4):
        super().__init__()
        inner_dim = dim_head * heads
        self.heads, self.scale = heads, dim_head ** -0.5
        self.attend = nn.Softmax(dim=-1)
        self.to_qkv = nn.Linear(dim, inner_dim * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(inner_dim, dim), nn.Dropout(0.0))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = map(lambda t: t.reshape(b, n, self.heads, -1).permute(0, 2, 1, 3), self.to_qkv(x).chunk(3, dim=-1))
        attn = self.attend(torch.matmul(q, k.transpose(-1, -2)) * self.scale)
        return self.to_out(torch.matmul(attn, v).permute(0, 2, 1, 3).flatten(2))


class ViT(nn.Module):
    def __init__(self, image_size=8, patch_size=4, classes=3, dim=8, depth=2):
        super().__init__()
        height, width = pair(image_size)
        count = (height // patch_size) * (width // patch_size)
        self.patch_size = patch_size
        self.to_patch = nn.Linear(3 * patch_size ** 2, dim)
        self.pos_embedding = nn.Parameter(torch.randn(1, count + 1, dim))
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([
                PreNorm(dim, Attention(dim)),
                PreNorm(dim, nn.Sequential(nn.Linear(dim, 16), nn.GELU(), nn.Linear(16, dim))),
            ]))
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def forward(self, img):
        x = nn.functional.unfold(img, self.patch_size, stride=self.patch_size).transpose(1, 2)
        x = self.to_patch(x)
        cls_tokens = self.cls_token.expand(x.shape[0], -1, -1)
        x = torch.cat((cls_tokens, x), dim=1)
        x += self.pos_embedding[:, :(x.shape[1])]
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.mlp_head(x[:, 0])


def losses():
    model = fill(ViT())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)
    x, y, found = torch.from_numpy(numbers(4, 3, 8, 8)), torch.tensor(integers(3, 4)), []
    for _ in range(6):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        found.append(loss.item())
    return found + scheduler.get_last_lr()
