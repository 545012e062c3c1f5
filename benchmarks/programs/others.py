"""Graphs, sets, physics, densities, learning to learn, and optimizers that programs write."""
import types

import torch
import torch.nn as nn
import torch.nn.functional as F
from alike import classes, numbers, real, training, uniform
from drivers import program
from stubs import stub


@program("tkipf/pygcn", "pygcn/models.py pygcn/layers.py")
def gcn():
    from pygcn.models import GCN

    model = GCN(nfeat=6, nhid=8, nclass=3, dropout=0.5)
    links = (uniform(12, 12) > 0.7).float() + torch.eye(12)
    links = links / links.sum(1, keepdim=True)
    chosen = torch.LongTensor(range(5))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    step = training(optimizer, lambda x, y: F.nll_loss(model(x, links)[chosen], y[chosen]))
    return step, lambda: (real(12, 6), classes(3, 12))


@program("Diego999/pyGAT", "models.py layers.py")
def gat():
    from models import GAT

    model = GAT(nfeat=6, nhid=4, nclass=3, dropout=0.6, alpha=0.2, nheads=2)
    links = (uniform(12, 12) > 0.7).float() + torch.eye(12)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005, weight_decay=5e-4)
    return training(optimizer, lambda x, y: F.nll_loss(model(x, links), y)), lambda: (real(12, 6), classes(3, 12))


@program("manzilzaheer/DeepSets", "PointClouds/classifier.py", "PointClouds")
def deep_sets():
    from classifier import DTanh

    model = DTanh(16, x_dim=3, pool="max1")

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        clip(model, 5)
        optimizer.step()
        return loss

    from classifier import clip_grad as clip

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-7, eps=1e-3)
    return step, lambda: (real(4, 10, 3), classes(40, 4))


@program("greydanus/hamiltonian-nn", "hnn.py nn_models.py utils.py")
def hnn():
    stub("imageio")
    from hnn import HNN
    from nn_models import MLP
    from utils import L2_loss

    model = HNN(2, differentiable_model=MLP(2, 20, 2, "tanh"), field_type="solenoidal")
    optimizer = torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1e-4)
    data = real(16, 2).requires_grad_()

    def step(rates):
        loss = L2_loss(rates, model.rk4_time_derivative(data, 0.1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step, lambda: (real(16, 2),)


@program("rtqichen/torchdiffeq", "torchdiffeq/_impl/odeint.py torchdiffeq/_impl/misc.py torchdiffeq/_impl/solvers.py "
         "torchdiffeq/_impl/fixed_grid.py torchdiffeq/_impl/rk_common.py")
def neural_ode():
    from torchdiffeq import odeint

    class Rate(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))

        def forward(self, t, y):
            return self.net(y**3)

    model, times = Rate(), torch.linspace(0.0, 1.0, 5)
    step = training(torch.optim.RMSprop(model.parameters(), lr=1e-3),
                    lambda y0, y: torch.mean(torch.abs(odeint(model, y0, times, method="rk4") - y)))
    return step, lambda: (real(8, 2), real(5, 8, 2))


@program("yenchenlin/nerf-pytorch", "run_nerf_helpers.py run_nerf.py")
def nerf():
    for name in ("imageio", "configargparse", "load_llff", "load_deepvoxels", "load_blender", "load_LINEMOD"):
        stub(name)
    from run_nerf import raw2outputs
    from run_nerf_helpers import NeRF, get_embedder, get_rays, img2mse, sample_pdf

    embed, size = get_embedder(4)
    embed_views, size_views = get_embedder(2)
    model = NeRF(D=4, W=16, input_ch=size, input_ch_views=size_views, output_ch=4, skips=[2], use_viewdirs=True)
    origins, rays = get_rays(4, 4, torch.tensor([[5.0, 0, 2], [0, 5.0, 2], [0, 0, 1]]), torch.eye(4))
    origins, rays = origins.reshape(-1, 3), rays.reshape(-1, 3)

    def colours(z):
        points = origins[..., None, :] + rays[..., None, :] * z[..., :, None]
        views = (rays / torch.norm(rays, dim=-1, keepdim=True))[:, None].expand(points.shape)
        raw = model(torch.cat([embed(points.reshape(-1, 3)), embed_views(views.reshape(-1, 3))], -1))
        return raw2outputs(raw.reshape(*points.shape[:-1], 4), z, rays, white_bkgd=True)

    def loss_of(target):
        z = torch.linspace(2.0, 6.0, steps=6).expand([16, 6])
        rgb, _, _, weights, _ = colours(z)
        more = sample_pdf(0.5 * (z[..., 1:] + z[..., :-1]), weights[..., 1:-1], 4, det=True).detach()
        fine = colours(torch.sort(torch.cat([z, more], -1), -1)[0])[0]
        return img2mse(rgb, target) + img2mse(fine, target)

    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4, betas=(0.9, 0.999))
    return training(optimizer, loss_of), lambda: (uniform(16, 3),)


@program("ikostrikov/pytorch-flows", "flows.py")
def maf():
    import flows as fnn

    parts = []
    for _ in range(2):
        parts += [fnn.MADE(4, 12, None, act="relu"), fnn.BatchNormFlow(4), fnn.Reverse(4)]
    model = fnn.FlowSequential(*parts)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.orthogonal_(module.weight)
            if hasattr(module, "bias") and module.bias is not None:
                module.bias.data.fill_(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
    return training(optimizer, lambda x: -model.log_probs(x, None).mean()), lambda: (real(16, 4),)


@program("ikostrikov/pytorch-flows", "flows.py")
def coupling_flow():
    import flows as fnn

    mask, parts = (torch.arange(0, 4) % 2).float(), []
    for _ in range(2):
        parts += [fnn.BatchNormFlow(4), fnn.LUInvertibleMM(4),
                  fnn.CouplingLayer(4, 12, mask, None, s_act="tanh", t_act="relu")]
        mask = 1 - mask
    model = fnn.FlowSequential(*parts)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
    return training(optimizer, lambda x: -model.log_probs(x, None).mean()), lambda: (real(16, 4),)


@program("dragen1860/MAML-Pytorch", "meta.py learner.py")
def maml():
    from meta import Meta

    config = [("conv2d", [8, 1, 3, 3, 2, 0]), ("relu", [True]), ("bn", [8]), ("conv2d", [8, 8, 3, 3, 2, 0]),
              ("relu", [True]), ("bn", [8]), ("flatten", []), ("linear", [5, 8 * 2 * 2])]
    options = types.SimpleNamespace(update_lr=0.4, meta_lr=1e-3, n_way=5, k_spt=1, k_qry=2, task_num=2, update_step=3,
                                    update_step_test=2, imgc=1, imgsz=12)
    model = Meta(options, config)

    def step(*batch):
        model(*batch)

    return step, lambda: (real(2, 5, 1, 12, 12), classes(5, 2, 5), real(2, 10, 1, 12, 12), classes(5, 2, 10))


@program("dfdazac/wassdistance", "layers.py")
def sinkhorn():
    from layers import SinkhornDistance

    model, distance = nn.Linear(3, 2), SinkhornDistance(eps=0.1, max_iter=20, reduction="mean")
    step = training(torch.optim.Adam(model.parameters(), lr=0.05), lambda x, y: distance(model(x), y)[0])
    return step, lambda: (real(2, 8, 3), real(2, 6, 2))


@program("sfujim/TD3", "TD3.py utils.py")
def td3():
    import TD3 as td3_program
    from utils import ReplayBuffer

    policy, memory = td3_program.TD3(3, 2, 1.0), ReplayBuffer(3, 2, max_size=64)
    for _ in range(64):
        memory.add(*(numbers.standard_normal(n) for n in (3, 2, 3)), numbers.standard_normal(), 0.0)

    def step():
        policy.train(memory, 16)

    return step, lambda: ()


def rangers():
    stub("pytorch_ranger", **{name: type(name, (), {}) for name in ("Ranger", "RangerQH", "RangerVA")})


def _small(optimizer_of):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))
    return training(optimizer_of(model.parameters()), lambda x, y: F.cross_entropy(model(x), y))


@program("jettify/pytorch-optimizer", "torch_optimizer/yogi.py torch_optimizer/lamb.py torch_optimizer/radam.py "
         "torch_optimizer/adabound.py torch_optimizer/diffgrad.py torch_optimizer/qhadam.py torch_optimizer/lion.py")
def optimizers():
    rangers()
    import torch_optimizer as others

    steps = [_small(lambda p, kind=kind: getattr(others, kind)(p, lr=1e-2))
             for kind in "Yogi Lamb RAdam AdaBound DiffGrad QHAdam Lion".split()]
    return (lambda x, y: sum(step(x, y) for step in steps)), lambda: (real(4, 1, 8, 8), classes(3, 4))


@program("jettify/pytorch-optimizer", "torch_optimizer/novograd.py torch_optimizer/madgrad.py "
         "torch_optimizer/adamp.py torch_optimizer/lookahead.py", edits=[
             ("torch_optimizer/lookahead.py", "slow.data.copy_(fast)", "slow.data.copy_(fast.detach())")])
def more_optimizers():
    rangers()
    import torch_optimizer as others

    kinds = [lambda p: others.NovoGrad(p, lr=1e-2),
             lambda p: others.MADGRAD(p, lr=1e-3), lambda p: others.AdamP(p, lr=1e-2),
             lambda p: others.Lookahead(others.Yogi(p, lr=1e-2), k=2)]
    steps = [_small(kind) for kind in kinds]
    return (lambda x, y: sum(step(x, y) for step in steps)), lambda: (real(4, 1, 8, 8), classes(3, 4))
