"""Programs about pictures, and points in space."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from alike import classes, real, training, uniform
from drivers import program
from stubs import stub


@program("AntixK/PyTorch-VAE", "models/vanilla_vae.py models/base.py", ".")
def vanilla_vae():
    from models.vanilla_vae import VanillaVAE

    model = VanillaVAE(3, 8, [4, 8, 8, 16, 512])
    step = training(
        torch.optim.Adam(model.parameters(), lr=5e-3),
        lambda x: model.loss_function(*model(x), M_N=0.00025)["loss"],
    )
    return step, lambda: (real(4, 3, 64, 64),)


@program("AntixK/PyTorch-VAE", "models/vq_vae.py models/base.py", ".")
def vq_vae():
    from models.vq_vae import VQVAE

    model = VQVAE(3, 8, 16, [8, 16], img_size=16)
    step = training(
        torch.optim.Adam(model.parameters(), lr=5e-3), lambda x: model.loss_function(*model(x), M_N=0.00025)["loss"]
    )
    return step, lambda: (real(4, 3, 16, 16),)


@program("AntixK/PyTorch-VAE", "models/betatc_vae.py models/base.py", ".")
def betatc_vae():
    from models.betatc_vae import BetaTCVAE

    model = BetaTCVAE(3, 8, [4, 4, 8, 32])
    step = training(
        torch.optim.Adam(model.parameters(), lr=5e-3),
        lambda x: model.loss_function(*model(x), M_N=0.00025)["loss"],
    )
    return step, lambda: (real(4, 3, 64, 64),)


@program("milesial/Pytorch-UNet", "unet/unet_model.py unet/unet_parts.py utils/dice_score.py")
def unet():
    from unet.unet_model import UNet
    from utils.dice_score import dice_loss

    model = UNet(3, 3, bilinear=True)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, weight_decay=1e-8, momentum=0.999, foreach=True)
    criterion = nn.CrossEntropyLoss()

    def step(x, masks):
        predicted = model(x)
        loss = criterion(predicted, masks)
        loss += dice_loss(
            F.softmax(predicted, dim=1).float(), F.one_hot(masks, 3).permute(0, 3, 1, 2).float(), multiclass=True
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, lambda: (real(2, 3, 36, 32), classes(3, 2, 36, 32))


@program("lucidrains/mlp-mixer-pytorch", "mlp_mixer_pytorch/mlp_mixer_pytorch.py")
def mlp_mixer():
    from mlp_mixer_pytorch import MLPMixer

    model = MLPMixer(image_size=16, channels=3, patch_size=4, dim=32, depth=2, num_classes=10)
    step = training(torch.optim.Adam(model.parameters(), lr=1e-3), lambda x, y: F.cross_entropy(model(x), y))
    return step, lambda: (real(4, 3, 16, 16), classes(10, 4))


@program("lucidrains/mlp-mixer-pytorch", "mlp_mixer_pytorch/permutator.py")
def permutator():
    from mlp_mixer_pytorch import Permutator

    model = Permutator(image_size=16, patch_size=4, dim=32, depth=2, segments=4, num_classes=10)
    step = training(torch.optim.AdamW(model.parameters(), lr=1e-3), lambda x, y: F.cross_entropy(model(x), y))
    return step, lambda: (real(4, 3, 16, 16), classes(10, 4))


@program("lucidrains/siren-pytorch", "siren_pytorch/siren_pytorch.py")
def siren():
    from siren_pytorch import SirenNet, SirenWrapper

    net = SirenNet(dim_in=2, dim_hidden=32, dim_out=3, num_layers=3, w0_initial=30.0)
    model = SirenWrapper(net, image_width=8, image_height=8, latent_dim=6)
    latent = nn.Parameter(real(6, scale=0.1))
    step = training(
        torch.optim.Adam([*model.parameters(), latent], lr=1e-4), lambda x: model(x, latent=latent)
    )
    return step, lambda: (real(1, 3, 8, 8),)


@program("facebookresearch/ConvNeXt", "models/convnext.py", "models")
def convnext():
    from convnext import ConvNeXt

    model = ConvNeXt(num_classes=10, depths=[1, 1, 2, 1], dims=[8, 16, 24, 32], layer_scale_init_value=0.1)
    step = training(torch.optim.AdamW(model.parameters(), lr=4e-3), lambda x, y: F.cross_entropy(model(x), y))
    return step, lambda: (real(2, 3, 64, 64), classes(10, 2))


@program("microsoft/Swin-Transformer", "models/swin_transformer.py", "models")
def swin():
    from swin_transformer import SwinTransformer

    model = SwinTransformer(img_size=32, patch_size=2, num_classes=10, embed_dim=12, depths=[2, 2], num_heads=[2, 4],
                            window_size=4, drop_path_rate=0.0)
    step = training(torch.optim.AdamW(model.parameters(), lr=1e-3), lambda x, y: F.cross_entropy(model(x), y))
    return step, lambda: (real(2, 3, 32, 32), classes(10, 2))


@program("d-li14/mobilenetv3.pytorch", "mobilenetv3.py")
def mobilenetv3():
    from mobilenetv3 import mobilenetv3_small

    model = mobilenetv3_small(num_classes=10, width_mult=0.5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=4e-5)
    return training(optimizer, lambda x, y: F.cross_entropy(model(x), y)), lambda: (real(8, 3, 64, 64), classes(10, 8))


@program("yjn870/SRCNN-pytorch", "models.py")
def srcnn():
    from models import SRCNN

    model, criterion = SRCNN(), nn.MSELoss()
    optimizer = torch.optim.Adam(
        [{"params": model.conv1.parameters()}, {"params": model.conv2.parameters()},
         {"params": model.conv3.parameters(), "lr": 1e-5}], lr=1e-4)
    step = training(optimizer, lambda x, y: criterion(model(x), y))
    return step, lambda: (uniform(2, 1, 20, 20), uniform(2, 1, 20, 20))


@program("xinntao/ESRGAN", "RRDBNet_arch.py")
def esrgan():
    from RRDBNet_arch import RRDBNet

    model = RRDBNet(3, 3, 8, 2, gc=4)
    step = training(torch.optim.Adam(model.parameters(), lr=1e-4), lambda x, y: F.l1_loss(model(x), y))
    return step, lambda: (uniform(2, 3, 8, 8), uniform(2, 3, 32, 32))


@program("davda54/sam", "sam.py example/model/wide_res_net.py example/model/smooth_cross_entropy.py", "example .")
def sam():
    from model.smooth_cross_entropy import smooth_crossentropy
    from model.wide_res_net import WideResNet
    from sam import SAM
    from utility.bypass_bn import disable_running_stats, enable_running_stats

    model = WideResNet(10, 1, 0.0, in_channels=3, labels=10)
    options = {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4}
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=2.0, adaptive=True, **options)

    def step(x, y):
        enable_running_stats(model)
        loss = smooth_crossentropy(model(x), y, smoothing=0.1)
        loss.mean().backward()
        optimizer.first_step(zero_grad=True)
        disable_running_stats(model)
        smooth_crossentropy(model(x), y, smoothing=0.1).mean().backward()
        optimizer.second_step(zero_grad=True)
        return loss.mean()

    return step, lambda: (real(4, 3, 32, 32), classes(10, 4))


@program("HobbitLong/SupContrast", "losses.py networks/resnet_big.py")
def supcon():
    from losses import SupConLoss
    from networks.resnet_big import SupConResNet

    model, criterion = SupConResNet(name="resnet18", feat_dim=16), SupConLoss(temperature=0.07)

    def loss_of(x, y):
        features = model(x)
        f1, f2 = torch.split(features, [4, 4], dim=0)
        return criterion(torch.cat([f1.unsqueeze(1), f2.unsqueeze(1)], dim=1), y)

    return training(torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), loss_of), \
        lambda: (real(8, 3, 16, 16), classes(3, 4))


@program("adambielski/siamese-triplet", "losses.py networks.py utils.py")
def triplets():
    from losses import OnlineTripletLoss
    from networks import EmbeddingNet
    from utils import SemihardNegativeTripletSelector

    model = EmbeddingNet()
    criterion = OnlineTripletLoss(1.0, SemihardNegativeTripletSelector(1.0))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return training(optimizer, lambda x, y: criterion(model(x), y)[0]), lambda: (real(10, 1, 28, 28), classes(3, 10))


@program("g1910/HyperNetworks", "hypernetwork_modules.py primary_net.py resnet_blocks.py")
def hypernetworks():
    from primary_net import PrimaryNetwork

    model = PrimaryNetwork(z_dim=8)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.002, weight_decay=0.0005)
    rate = torch.optim.lr_scheduler.MultiStepLR(optimizer=optimizer, milestones=[2, 5], gamma=0.5)
    train = training(optimizer, lambda x, y: F.cross_entropy(model(x), y))

    def step(x, y):
        loss = train(x, y)
        rate.step()
        return loss

    return step, lambda: (real(4, 3, 32, 32), classes(10, 4))


@program("rosinality/vq-vae-2-pytorch", "vqvae.py distributed/distributed.py", edits=[
    ("vqvae.py", "add_(embed_sum, alpha", "add_(embed_sum.detach(), alpha")])
def vqvae2():
    from vqvae import VQVAE

    model, criterion = VQVAE(channel=16, n_res_block=1, n_res_channel=8, embed_dim=8, n_embed=16), nn.MSELoss()

    def loss_of(x):
        out, latent = model(x)
        return criterion(out, x) + 0.25 * latent.mean()

    return training(torch.optim.Adam(model.parameters(), lr=3e-4), loss_of), lambda: (real(2, 3, 32, 32),)


@program("rosinality/glow-pytorch", "model.py")
def glow():
    from model import Glow

    model = Glow(3, 2, 2, affine=True, conv_lu=True)
    x = real(4, 3, 16, 16, scale=0.3)
    with torch.no_grad():
        model(x)

    def loss_of(x):
        log_p, logdet, _ = model(x)
        return -(logdet + log_p).mean() / 768

    return training(torch.optim.Adam(model.parameters(), lr=1e-4), loss_of), lambda: (real(4, 3, 16, 16, scale=0.3),)


@program("dome272/Diffusion-Models-pytorch", "modules.py ddpm.py utils.py")
def diffusion():
    stub("torch.utils.tensorboard")
    from ddpm import Diffusion
    from modules import EMA, UNet

    model, noise = UNet(device="cpu"), Diffusion(noise_steps=100, img_size=64, device="cpu")
    averaged, ema = copy.deepcopy(model), EMA(0.995)

    def loss_of(x):
        t = noise.sample_timesteps(x.shape[0])
        x_t, e = noise.noise_images(x, t)
        return F.mse_loss(e, model(x_t, t))

    train = training(torch.optim.AdamW(model.parameters(), lr=3e-4), loss_of)

    def step(x):
        loss = train(x)
        ema.step_ema(averaged, model)
        return loss

    return step, lambda: (real(1, 3, 64, 64),)


@program("cloneofsimo/minDiffusion", "superminddpm.py")
def superminddpm():
    from superminddpm import DDPM

    first, last = nn.Conv2d(1, 8, 7, padding=3), nn.Conv2d(8, 1, 3, padding=1)
    blocks = nn.Sequential(first, nn.BatchNorm2d(8), nn.LeakyReLU(), last)
    net = nn.Module()
    net.blocks = blocks
    net.forward = lambda x, t: blocks(x)
    model = DDPM(eps_model=net, betas=(1e-4, 0.02), n_T=100)
    return training(torch.optim.Adam(model.parameters(), lr=2e-4), model), lambda: (real(4, 1, 14, 14),)


@program("fxia22/pointnet.pytorch", "pointnet/model.py")
def pointnet():
    from pointnet.model import PointNetCls, feature_transform_regularizer

    model = PointNetCls(k=5, feature_transform=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001, betas=(0.9, 0.999))

    def loss_of(points, y):
        predicted, _, features = model(points)
        loss = F.nll_loss(predicted, y)
        loss += feature_transform_regularizer(features) * 0.001
        return loss

    return training(optimizer, loss_of), lambda: (real(8, 32, 3).transpose(2, 1), classes(5, 8))


@program("weiaicunzai/pytorch-cifar100", "models/googlenet.py", "models")
def googlenet():
    from googlenet import googlenet as make

    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9, weight_decay=5e-4, nesterov=True)
    return training(optimizer, lambda x, y: F.cross_entropy(model(x), y)), lambda: (real(8, 3, 16, 16), classes(100, 8))


@program("lukemelas/EfficientNet-PyTorch", "efficientnet_pytorch/model.py efficientnet_pytorch/utils.py")
def efficientnet():
    from efficientnet_pytorch import EfficientNet

    model = EfficientNet.from_name("efficientnet-b0", num_classes=10, image_size=64, drop_connect_rate=0.0)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, alpha=0.9, momentum=0.9, eps=1e-3)
    return training(optimizer, lambda x, y: F.cross_entropy(model(x), y)), lambda: (real(8, 3, 64, 64), classes(10, 8))


@program("clcarwin/focal_loss_pytorch", "focalloss.py")
def focal_loss():
    import focalloss

    focalloss.long = int
    model, criterion = nn.Conv2d(3, 4, 3, padding=1), focalloss.FocalLoss(gamma=2, alpha=[0.1, 0.2, 0.3, 0.4])
    step = training(torch.optim.SGD(model.parameters(), lr=0.5), lambda x, y: criterion(model(x), y))
    return step, lambda: (real(2, 3, 8, 8), classes(4, 2, 8, 8))
