"""Programs by what they practise: adapters, penalties on weights, samplers, checkpoints, functions of parameters."""
import builtins
import sys
import types

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from alike import classes, numbers, real, training, uniform
from drivers import CLONES, program, script
from stubs import Images, Pole, stub


@program("w86763777/pytorch-ddpm", "model.py diffusion.py")
def ddpm_unet():
    from diffusion import GaussianDiffusionTrainer
    from model import UNet

    trainer = GaussianDiffusionTrainer(UNet(20, 32, [1, 2], [1], 1, 0.1), 1e-4, 0.02, 20)
    optimizer = torch.optim.Adam(trainer.parameters(), lr=2e-4)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step, 5) / 5)

    def step(x):
        optimizer.zero_grad()
        loss = trainer(x).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trainer.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        return loss

    return step, lambda: (real(2, 3, 8, 8),)


@program("christiancosgrove/pytorch-spectral-normalization-gan", "model.py spectral_normalization.py")
def spectral_gan():
    import model

    critic, maker = model.Discriminator(), model.Generator(8)
    moving = torch.optim.Adam(filter(lambda p: p.requires_grad, critic.parameters()), lr=2e-4, betas=(0.0, 0.9))

    def loss_of(x, z):
        return nn.ReLU()(1.0 - critic(x)).mean() + nn.ReLU()(1.0 + critic(maker(z))).mean()

    return training(moving, loss_of), lambda: (real(2, 3, 32, 32), real(2, 8))


@program("ikostrikov/pytorch-a2c-ppo-acktr-gail", "a2c_ppo_acktr/model.py a2c_ppo_acktr/distributions.py "
         "a2c_ppo_acktr/storage.py a2c_ppo_acktr/algo/ppo.py")
def actor_critic():
    stub("a2c_ppo_acktr.envs")
    from a2c_ppo_acktr.algo import PPO
    from a2c_ppo_acktr.model import Policy
    from a2c_ppo_acktr.storage import RolloutStorage

    Discrete = type("Discrete", (), {"n": 2})
    policy = Policy((4,), Discrete(), base_kwargs={"recurrent": True})
    agent = PPO(policy, 0.2, 2, 2, 0.5, 0.01, lr=1e-3, eps=1e-5, max_grad_norm=0.5)
    rollouts = RolloutStorage(8, 2, (4,), Discrete(), policy.recurrent_hidden_state_size)
    games = [Pole(), Pole()]
    rollouts.obs[0].copy_(torch.tensor(np.stack([game.reset()[0] for game in games])))

    def step():
        for i in range(8):
            with torch.no_grad():
                value, action, log_prob, hidden = policy.act(
                    rollouts.obs[i], rollouts.recurrent_hidden_states[i], rollouts.masks[i])
            found = [game.step(int(each)) for game, each in zip(games, action)]
            states = [game.reset()[0] if f[2] else f[0] for game, f in zip(games, found)]
            masks = torch.FloatTensor([[0.0] if f[2] else [1.0] for f in found])
            rollouts.insert(torch.tensor(np.stack(states)), hidden, action, log_prob, value, torch.ones(2, 1), masks,
                            torch.ones(2, 1))
        with torch.no_grad():
            last = policy.get_value(rollouts.obs[-1], rollouts.recurrent_hidden_states[-1], rollouts.masks[-1])
        rollouts.compute_returns(last.detach(), True, 0.99, 0.95, False)
        losses = agent.update(rollouts)
        rollouts.after_update()
        return torch.tensor(losses[0])

    return step, lambda: ()


@program("williamleif/graphsage-simple", "graphsage/encoders.py graphsage/aggregators.py")
def graphsage():
    from graphsage.aggregators import MeanAggregator
    from graphsage.encoders import Encoder

    features = nn.Embedding(20, 6)
    features.weight = nn.Parameter(torch.FloatTensor(numbers.standard_normal((20, 6))), requires_grad=False)
    neighbours = {i: {(i + k) % 20 for k in (1, 3, 7)} for i in range(20)}
    first = Encoder(features, 6, 8, neighbours, MeanAggregator(features, cuda=False), gcn=False, cuda=False)
    second = Encoder(lambda nodes: first(nodes).t(), 8, 8, neighbours,
                     MeanAggregator(lambda nodes: first(nodes).t(), cuda=False), base_model=first)
    first.num_samples = second.num_samples = 5
    head = nn.Linear(8, 3)
    moving = filter(lambda p: p.requires_grad, [*second.parameters(), *head.parameters()])
    optimizer = torch.optim.SGD(moving, lr=0.7)
    step = training(optimizer, lambda y: F.cross_entropy(head(second(list(range(0, 20, 2))).t()), y))
    return step, lambda: (classes(3, 10),)


@program("vgsatorras/egnn", "models/egnn_clean/egnn_clean.py")
def egnn():
    from models.egnn_clean.egnn_clean import EGNN, get_edges_batch

    model = EGNN(in_node_nf=1, hidden_nf=8, out_node_nf=1, in_edge_nf=1, n_layers=2, attention=True)
    edges, attributes = get_edges_batch(4, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def loss_of(h, x, y):
        found, moved = model(h, x, edges, attributes)
        return F.mse_loss(moved, y) + found.pow(2).mean()

    return training(optimizer, loss_of), lambda: (real(12, 1), real(12, 3), real(12, 3))


@program("jakesnell/prototypical-networks", "protonets/models/few_shot.py protonets/models/utils.py")
def prototypes():
    from protonets.models.few_shot import load_protonet_conv

    model = load_protonet_conv(x_dim=[1, 16, 16], hid_dim=8, z_dim=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)

    def step(support, query):
        optimizer.zero_grad()
        loss, _ = model.loss({"xs": support, "xq": query})
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss

    return step, lambda: (real(3, 2, 1, 16, 16), real(3, 4, 1, 16, 16))


@program("keon/seq2seq", "model.py")
def keon():
    from model import Decoder, Encoder, Seq2Seq

    model = Seq2Seq(Encoder(12, 6, 8, 2, 0.0), Decoder(6, 8, 12, 1, 0.0))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x, y):
        optimizer.zero_grad()
        out = model(x, y, teacher_forcing_ratio=1.0)
        loss = F.nll_loss(out[1:].view(-1, 12), y[1:].contiguous().view(-1), ignore_index=0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()
        return loss

    return step, lambda: (classes(12, 5, 3), classes(12, 4, 3))


class Prior:
    """Independent normal numbers: flows take any object with these two functions."""

    def log_prob(self, z):
        return -0.5 * z**2

    def sample(self, shape):
        return real(*shape, 4)


@program("karpathy/pytorch-normalizing-flows", "nflib/flows.py nflib/spline_flows.py nflib/nets.py nflib/made.py")
def spline_flow():
    from nflib.flows import MAF, ActNorm, AffineHalfFlow, NormalizingFlowModel
    from nflib.spline_flows import NSF_CL

    flows = [ActNorm(4), AffineHalfFlow(dim=4, parity=True), MAF(4, True), ActNorm(4), NSF_CL(4, K=4, B=3)]
    model = NormalizingFlowModel(Prior(), flows)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)

    def loss_of(x):
        _, prior, log_det = model(x)
        return -torch.sum(prior + log_det)

    return training(optimizer, loss_of), lambda: (real(8, 4),)


@program("bayesiains/nflows", "nflows/flows/base.py nflows/transforms/autoregressive.py nflows/transforms/made.py "
         "nflows/transforms/splines/rational_quadratic.py nflows/transforms/lu.py nflows/distributions/normal.py")
def nflows():
    stub("UMNN")
    from nflows.distributions.normal import StandardNormal
    from nflows.flows.base import Flow
    from nflows.transforms import (
        CompositeTransform,
        LULinear,
        MaskedPiecewiseRationalQuadraticAutoregressiveTransform,
        RandomPermutation,
    )

    layers = [MaskedPiecewiseRationalQuadraticAutoregressiveTransform(4, 8, tails="linear", tail_bound=3.0, num_bins=4)
              for _ in range(2)]
    flow = Flow(CompositeTransform([layers[0], RandomPermutation(4), LULinear(4), layers[1]]), StandardNormal([4]))
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
    return training(optimizer, lambda x: -flow.log_prob(inputs=x).mean()), lambda: (real(8, 4),)


@program("microsoft/LoRA", "loralib/layers.py loralib/utils.py")
def loralib():
    import loralib as lora

    model = nn.Sequential(lora.Embedding(12, 8, r=2), lora.MergedLinear(8, 12, r=2, enable_lora=[True, False, True]),
                          nn.Tanh(), lora.Linear(12, 5, r=2, lora_alpha=4))
    lora.mark_only_lora_as_trainable(model, bias="lora_only")
    optimizer = torch.optim.AdamW(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
    count = [0]

    def step(x, y):
        count[0] += 1
        if count[0] % 3 == 0:  # merged and taken apart again; the state goes around
            model.eval()
            model(x)
            model.train()
            model.load_state_dict(lora.lora_state_dict(model, bias="lora_only"), strict=False)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda: (classes(12, 6), classes(5, 6))


@program("jeonsworld/ViT-pytorch", "models/modeling.py models/modeling_resnet.py utils/scheduler.py")
def vision_transformer():
    stub("ml_collections", ConfigDict=Named)
    stub("scipy")
    from models.modeling import VisionTransformer
    from utils.scheduler import WarmupCosineSchedule

    parts = Named(mlp_dim=32, num_heads=2, num_layers=2, attention_dropout_rate=0.0, dropout_rate=0.1)
    config = Named(patches=Named(size=(4, 4)), hidden_size=16, classifier="token", representation_size=None,
                   transformer=parts)
    model = VisionTransformer(config, 8, num_classes=5, zero_head=False, vis=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=3e-2, momentum=0.9)
    schedule = WarmupCosineSchedule(optimizer, warmup_steps=3, t_total=10)

    def step(x, y):
        loss = model(x, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        schedule.step()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step, lambda: (real(4, 3, 8, 8), classes(5, 4))


class Named(dict):
    """A dictionary whose keys are attributes too, as configurations are."""

    __setattr__, __delattr__ = dict.__setitem__, dict.__delitem__

    def __getattr__(self, name):
        if name not in self:
            raise AttributeError(name)
        return self[name]


@program("fungtion/DANN", "models/model.py models/functions.py", "models")
def dann():
    from model import CNNModel

    model = CNNModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss_class, loss_domain, alpha = torch.nn.NLLLoss(), torch.nn.NLLLoss(), 0.5

    def step(source, labels, target):
        model.zero_grad()
        found, domain = model(input_data=source, alpha=alpha)
        _, other = model(input_data=target, alpha=alpha)
        error = loss_domain(other, torch.ones(4).long()) + loss_domain(domain, torch.zeros(4).long())
        loss = error + loss_class(found, labels)
        loss.backward()
        optimizer.step()
        return loss

    return step, lambda: (real(4, 3, 28, 28), classes(10, 4), real(4, 3, 28, 28))


@program("karpathy/llama2.c", "model.py")
def llama2():
    from model import ModelArgs, Transformer

    model = Transformer(ModelArgs(dim=16, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=20, max_seq_len=8))
    optimizer = model.configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cpu")
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    context = torch.amp.autocast(device_type="cpu", dtype=torch.float32, enabled=False)

    def step(x, y):
        with context:
            model(x, y)
            loss = model.last_loss / 2
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return step, lambda: (classes(20, 3, 8), classes(20, 3, 8))


@program("itayhubara/BinaryNet.pytorch", "models/binarized_modules.py")
def binary_net():
    from models.binarized_modules import BinarizeConv2d, BinarizeLinear

    net = nn.Sequential(BinarizeConv2d(3, 8, kernel_size=3, padding=1), nn.BatchNorm2d(8), nn.Hardtanh(inplace=True),
                        nn.Flatten(), BinarizeLinear(8 * 36, 5))
    optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)

    def step(x, y):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        for p in list(net.parameters()):
            if hasattr(p, "org"):
                p.data.copy_(p.org)
        optimizer.step()
        for p in list(net.parameters()):
            if hasattr(p, "org"):
                p.org.copy_(p.data.clamp_(-1, 1))
        return loss

    return step, lambda: (real(4, 3, 6, 6), classes(5, 4))


@program("facebookresearch/detr", "models/transformer.py models/matcher.py util/box_ops.py", "models")
def detr():
    from transformer import Transformer

    model = Transformer(d_model=16, nhead=2, num_encoder_layers=1, num_decoder_layers=2, dim_feedforward=32,
                        dropout=0.0, return_intermediate_dec=True)
    queries, head = nn.Embedding(3, 16), nn.Linear(16, 4)
    optimizer = torch.optim.AdamW([
        {"params": model.parameters()}, {"params": [*head.parameters(), *queries.parameters()], "lr": 1e-4}], lr=1e-3)

    def loss_of(x, y):
        mask = torch.zeros(2, 4, 4, dtype=torch.bool)
        mask[1, :, 3:] = True
        out = model(x, mask, queries.weight, x.flip(2))[0]
        return F.l1_loss(head(out).sigmoid(), y.expand(2, 2, 3, 4))

    return training(optimizer, loss_of), lambda: (real(2, 16, 4, 4), uniform(2, 3, 4))


@program("jik876/hifi-gan", "models.py utils.py")
def hifi_gan():
    stub("matplotlib.pylab")
    import models

    h = types.SimpleNamespace(
        resblock="1", upsample_rates=[4, 2], upsample_kernel_sizes=[8, 4], upsample_initial_channel=16,
        resblock_kernel_sizes=[3, 5], resblock_dilation_sizes=[[1, 3, 5], [1, 3, 5]])
    maker, critic = models.Generator(h), models.DiscriminatorP(2)
    optimizer = torch.optim.AdamW(maker.parameters(), 2e-4, betas=[0.8, 0.99])
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.999, last_epoch=-1)

    def step(x, y):
        made = maker(x)
        optimizer.zero_grad()
        _, real_map = critic(y)
        fake_out, fake_map = critic(made)
        loss = F.l1_loss(y, made) * 45 + models.feature_loss([real_map], [fake_map])
        loss = loss + models.generator_loss([fake_out])[0]
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss

    return step, lambda: (real(2, 80, 4), real(2, 1, 32))


@program("Tony-Y/pytorch_warmup", "pytorch_warmup/base.py pytorch_warmup/untuned.py pytorch_warmup/radam.py")
def warmup():
    import pytorch_warmup

    model = nn.Linear(4, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, betas=(0.9, 0.999))
    slow = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
    warm = pytorch_warmup.UntunedLinearWarmup(optimizer)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        with warm.dampening():
            slow.step()
        return loss

    return step, lambda: (real(8, 4), classes(3, 8))


@program("galatolofederico/pytorch-balanced-batch", "sampler.py")
def balanced_batches():
    from sampler import BalancedBatchSampler

    x, y = real(30, 4), torch.tensor([0] * 20 + [1] * 7 + [2] * 3)
    data = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(
        data, sampler=BalancedBatchSampler(data, y), batch_size=6, num_workers=2,
        collate_fn=lambda items: {"x": torch.stack([a for a, _ in items]), "y": torch.stack([b for _, b in items])})
    model, batches = nn.Linear(4, 3), iter(loader)
    step = training(torch.optim.SGD(model.parameters(), lr=0.1),
                    lambda batch: F.cross_entropy(model(batch["x"]), batch["y"]))
    return step, lambda: (next(batches),)


@program("openai/CLIP", "clip/model.py", "clip")
def clip():
    from model import CLIP

    model = CLIP(embed_dim=8, image_resolution=32, vision_layers=(1, 1, 1, 1), vision_width=8, vision_patch_size=None,
                 context_length=6, vocab_size=20, transformer_width=16, transformer_heads=2, transformer_layers=2)
    model.float()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.2)

    def loss_of(x, words):
        a, b = model(x, words)
        y = torch.arange(len(a), device=a.device)
        return (F.cross_entropy(a, y) + F.cross_entropy(b, y)) / 2

    return training(optimizer, loss_of), lambda: (real(3, 3, 32, 32), classes(20, 3, 6))


@program("pytorch/pytorch", "functorch/examples/ensembling/parallel_train.py", "functorch/examples/ensembling")
def ensemble():
    sys.argv, everything = ["parallel_train.py"], builtins.range
    # The script trains when it is imported.
    builtins.range = lambda *given: everything(3) if given == (2000,) else everything(*given)
    import parallel_train as script

    builtins.range = everything
    together = script.vmap(script.train_step_fn, in_dims=(0, None, None))
    weights = script.init_fn(num_models=2)

    def step(x, y):
        loss, changed = together(weights, x, y)
        with torch.no_grad():
            for name in weights:
                weights[name].copy_(changed[name])
        return loss.sum()

    return step, lambda: (real(8, 2), classes(2, 8))


class Column(dict):
    """A column of a table, whose values can be set all at once."""

    @property
    def values(self):
        return self

    def __setitem__(self, key, value):
        self.update(dict.fromkeys(self, value)) if isinstance(key, slice) else super().__setitem__(key, value)


class Frame(Named):
    """A table of pandas: as much of it as a program needs that adds up its losses."""

    def __init__(self, index, columns):
        super().__init__({each: Column.fromkeys(index, 0.0) for each in columns}, columns=columns)


def template():
    Images.shape = (1, 28, 28)
    stub("pandas", DataFrame=Frame)
    for name in ("torch.utils.tensorboard", "tensorboardX"):
        stub(name)


script("makemore", "karpathy/makemore", "makemore.py", f"-i {CLONES.resolve()}/karpathy+makemore/names.txt "
       "--n-layer 2 --n-embd 16 --n-embd2 16", before=lambda: stub("torch.utils.tensorboard"))
TEMPLATE = "victoresque/pytorch-template"
script("template", TEMPLATE, "train.py", f"-c {CLONES.resolve()}/{TEMPLATE.replace('/', '+')}/config.json",
       "base/base_data_loader.py base/base_model.py base/base_trainer.py data_loader/data_loaders.py model/model.py "
       "model/loss.py model/metric.py trainer/trainer.py parse_config.py utils/util.py", before=template)
