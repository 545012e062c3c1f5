"""Programs about sequences: text, speech, films."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from alike import classes, real, training, uniform
from drivers import program
from stubs import stub


@program("lucidrains/performer-pytorch", "performer_pytorch/performer_pytorch.py performer_pytorch/reversible.py")
def performer():
    stub("local_attention", LocalAttention=nn.Identity)
    stub("axial_positional_embedding", AxialPositionalEmbedding=nn.Identity)
    from performer_pytorch.performer_pytorch import PerformerLM

    model = PerformerLM(num_tokens=50, max_seq_len=32, dim=32, depth=2, heads=2, dim_head=16, causal=True,
                        rotary_position_emb=True, shift_tokens=True)

    def loss_of(x):
        return F.cross_entropy(model(x[:, :-1]).transpose(1, 2), x[:, 1:])

    return training(torch.optim.Adam(model.parameters(), lr=1e-3), loss_of), lambda: (classes(50, 2, 17),)


@program("ndrplz/ConvLSTM_pytorch", "convlstm.py")
def convlstm():
    from convlstm import ConvLSTM

    model = ConvLSTM(2, [4, 4], (3, 3), 2, batch_first=True, bias=True, return_all_layers=True)

    def loss_of(x):
        outputs, states = model(x)
        return F.mse_loss(outputs[-1][:, :, :2], x) + states[0][1].abs().mean()

    return training(torch.optim.Adam(model.parameters(), lr=1e-2), loss_of), lambda: (real(2, 4, 2, 8, 8),)


@program("jadore801120/attention-is-all-you-need-pytorch",
         "transformer/Models.py transformer/Layers.py transformer/SubLayers.py transformer/Modules.py "
         "transformer/Optim.py")
def attention_is_all():
    from transformer.Models import Transformer
    from transformer.Optim import ScheduledOptim

    model = Transformer(30, 32, src_pad_idx=1, trg_pad_idx=1, d_k=8, d_v=8, d_model=16, d_word_vec=16, d_inner=32,
                        n_layers=2, n_head=2, dropout=0.0, trg_emb_prj_weight_sharing=True,
                        emb_src_trg_weight_sharing=False, n_position=20)
    optimizer = ScheduledOptim(torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-09), 2.0, 16, 4000)

    def step(source, target):
        optimizer.zero_grad()
        gold = target[:, 1:].contiguous().view(-1)
        predicted = model(source, target[:, :-1])
        one_hot = torch.zeros_like(predicted).scatter(1, gold.view(-1, 1), 1)
        one_hot = one_hot * (1 - 0.1) + (1 - one_hot) * 0.1 / (predicted.size(1) - 1)
        loss = -(one_hot * F.log_softmax(predicted, dim=1)).sum(dim=1)
        loss = loss.masked_select(gold.ne(1)).sum()
        loss.backward()
        optimizer.step_and_update_lr()
        return loss

    return step, lambda: (classes(30, 2, 7), classes(32, 2, 6))


@program("hyunwoongko/transformer", "models/model/transformer.py models/model/encoder.py models/model/decoder.py "
         "models/blocks/encoder_layer.py models/blocks/decoder_layer.py models/layers/multi_head_attention.py "
         "models/layers/scale_dot_product_attention.py models/layers/layer_norm.py "
         "models/layers/position_wise_feed_forward.py models/embedding/positional_encoding.py "
         "models/embedding/token_embeddings.py models/embedding/transformer_embedding.py")
def hyunwoong():
    from models.model.transformer import Transformer

    model = Transformer(src_pad_idx=1, trg_pad_idx=1, trg_sos_idx=2, d_model=16, enc_voc_size=30, dec_voc_size=30,
                        max_len=20, ffn_hidden=32, n_head=2, n_layers=2, drop_prob=0.0, device="cpu")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, weight_decay=5e-4, eps=5e-9)
    criterion = nn.CrossEntropyLoss(ignore_index=1)

    def step(source, target):
        optimizer.zero_grad()
        output = model(source, target[:, :-1])
        loss = criterion(output.contiguous().view(-1, output.shape[-1]), target[:, 1:].contiguous().view(-1))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss

    return step, lambda: (classes(30, 2, 7), classes(30, 2, 6))


@program("codertimo/BERT-pytorch", "bert_pytorch/model/bert.py bert_pytorch/model/language_model.py "
         "bert_pytorch/model/transformer.py bert_pytorch/model/attention/single.py "
         "bert_pytorch/model/attention/multi_head.py bert_pytorch/model/embedding/bert.py "
         "bert_pytorch/model/embedding/position.py bert_pytorch/model/embedding/token.py "
         "bert_pytorch/model/embedding/segment.py bert_pytorch/model/utils/gelu.py "
         "bert_pytorch/model/utils/layer_norm.py bert_pytorch/model/utils/sublayer.py "
         "bert_pytorch/model/utils/feed_forward.py bert_pytorch/trainer/optim_schedule.py")
def bert():
    from bert_pytorch.model import BERT, BERTLM
    from bert_pytorch.trainer.optim_schedule import ScheduledOptim

    model = BERTLM(BERT(40, hidden=16, n_layers=2, attn_heads=2, dropout=0.0), 40)
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.999), weight_decay=0.01)
    optimizer, criterion = ScheduledOptim(adam, 16, n_warmup_steps=100), nn.NLLLoss(ignore_index=0)

    def step(tokens, segments, following, labels):
        next_sentence, masked = model.forward(tokens, segments)
        loss = criterion(next_sentence, following) + criterion(masked.transpose(1, 2), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step_and_update_lr()
        return loss

    return step, lambda: (classes(40, 3, 9), classes(3, 3, 9), classes(2, 3) + 0, classes(40, 3, 9))


@program("salesforce/awd-lstm-lm", "model.py weight_drop.py locked_dropout.py embed_regularize.py utils.py "
         "splitcross.py")
def awd_lstm():
    from model import RNNModel
    from splitcross import SplitCrossEntropyLoss
    from utils import repackage_hidden

    model = RNNModel("LSTM", 60, 12, 16, 2, 0.4, 0.25, 0.4, 0.1, 0.5, tie_weights=True)
    criterion = SplitCrossEntropyLoss(12, splits=[], verbose=False)
    parameters = [*model.parameters(), *criterion.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=3.0, weight_decay=1.2e-6)
    kept = [model.init_hidden(4)]

    def step(data, targets):
        hidden = repackage_hidden(kept[0])
        optimizer.zero_grad()
        output, kept[0], raws, outputs = model(data, hidden, return_h=True)
        raw_loss = criterion(model.decoder.weight, model.decoder.bias, output, targets)
        loss = raw_loss + sum(2.0 * each.pow(2).mean() for each in outputs[-1:])
        loss = loss + sum(1.0 * (each[1:] - each[:-1]).pow(2).mean() for each in raws[-1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 0.25)
        optimizer.step()
        return loss

    return step, lambda: (classes(60, 5, 4), classes(60, 20))


@program("sooftware/conformer", "conformer/model.py conformer/encoder.py conformer/attention.py "
         "conformer/convolution.py conformer/feed_forward.py conformer/embedding.py conformer/modules.py "
         "conformer/activation.py")
def conformer():
    from conformer import Conformer

    model = Conformer(num_classes=10, input_dim=20, encoder_dim=16, num_encoder_layers=2, num_attention_heads=2,
                      conv_kernel_size=5, input_dropout_p=0.0, feed_forward_dropout_p=0.0, attention_dropout_p=0.0,
                      conv_dropout_p=0.0)
    criterion = nn.CTCLoss()

    def loss_of(x, y):
        outputs, lengths = model(x, torch.tensor([32, 30]))
        return criterion(outputs.transpose(0, 1), y, lengths, torch.tensor([3, 2]))

    return training(torch.optim.Adam(model.parameters(), lr=1e-3), loss_of), \
        lambda: (real(2, 32, 20), classes(9, 2, 3) + 1)


@program("emited/VariationalRecurrentNeuralNetwork", "model.py")
def vrnn():
    from model import VRNN

    model = VRNN(7, 12, 4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step(x):
        optimizer.zero_grad()
        kld_loss, nll_loss, _, _ = model(x)
        loss = kld_loss + nll_loss
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 10)
        optimizer.step()
        return loss

    return step, lambda: (uniform(5, 3, 7),)


@program("pbloem/former", "former/transformers.py former/modules.py former/util/util.py")
def former():
    stub("torch.utils.tensorboard")
    from former.transformers import GTransformer

    model = GTransformer(emb=16, heads=2, depth=2, seq_length=10, num_tokens=30, attention_type="wide")

    def loss_of(x, y):
        return F.nll_loss(model(x).transpose(2, 1), y, reduction="mean")

    return training(torch.optim.Adam(model.parameters(), lr=1e-3), loss_of), \
        lambda: (classes(30, 2, 10), classes(30, 2, 10))


@program("Andras7/word2vec-pytorch", "word2vec/model.py")
def word2vec():
    from word2vec.model import SkipGramModel

    model = SkipGramModel(40, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    return training(optimizer, model), lambda: (classes(40, 6), classes(40, 6), classes(40, 6, 5))


@program("kmkurn/pytorch-crf", "torchcrf/__init__.py")
def crf():
    from torchcrf import CRF

    encoder, layer = nn.LSTM(6, 5, bidirectional=True), CRF(4)
    head = nn.Linear(10, 4)
    parameters = [*encoder.parameters(), *head.parameters(), *layer.parameters()]
    mask = torch.tensor(np.array([[1, 1], [1, 1], [1, 1], [1, 0]], np.uint8)).bool()
    step = training(torch.optim.Adam(parameters, lr=0.05),
                    lambda x, tags: -layer(head(encoder(x)[0]), tags, mask=mask, reduction="token_mean"))
    return step, lambda: (real(4, 2, 6), classes(4, 4, 2))


@program("spro/practical-pytorch", "char-rnn-classification/model.py", "char-rnn-classification")
def char_rnn():
    from model import RNN

    model, criterion = RNN(20, 16, 5), nn.NLLLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005)

    def loss_of(x, y):
        hidden = model.initHidden()
        for i in range(x.size()[0]):
            output, hidden = model(x[i], hidden)
        return criterion(output, y)

    return training(optimizer, loss_of), lambda: (real(6, 1, 20), classes(5, 1))
