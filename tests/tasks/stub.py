"""A bigram language model under fairseq's interface, and a folder and task to go with it."""

import torch
from fairseq.models import FairseqDecoder, FairseqLanguageModel
from torch import nn

from seqstruct.data.cfl.folder import StringsRequest, write_folder
from seqstruct.tasks.cfl_language_modeling import CFLLanguageModelingConfig, CFLLanguageModelingTask
from tests.data.cfl.test_folder import SMALL


class Bigrams(FairseqDecoder):
    """Logits of the next symbol given the last one; all special symbols but EOS are impossible."""

    def __init__(self, dictionary, generator):
        super().__init__(dictionary)
        self.table = nn.Parameter(torch.randn(len(dictionary), len(dictionary), generator=generator))
        impossible = torch.zeros(len(dictionary), dtype=torch.bool)
        impossible[: dictionary.nspecial] = True
        impossible[dictionary.eos()] = False
        self.register_buffer("impossible", impossible)

    def forward(self, prev_output_tokens, **_):
        return self.table[prev_output_tokens].masked_fill(self.impossible, float("-inf")), {"attn": [None]}

    def max_positions(self):
        return 512


def bigram_model(task):
    return FairseqLanguageModel(Bigrams(task.source_dictionary, torch.Generator().manual_seed(1)))


def task_of(folder):
    return CFLLanguageModelingTask.setup_task(CFLLanguageModelingConfig(data=str(folder)))


def make_task(folder, language="dyck", **changes):
    write_folder(StringsRequest(language, **{**SMALL, **changes}), folder)
    return task_of(folder)


def batches(task, split, **options):
    task.load_dataset(split)
    iterator = task.get_batch_iterator(task.dataset(split), disable_iterator_cache=True, **options)
    return list(iterator.next_epoch_itr(shuffle=False))


@torch.no_grad()
def log_probability(model, string, dictionary):
    """Of one string and EOS, symbol by symbol, from the table."""
    total, last = 0.0, dictionary.bos()
    for symbol in [*(int(i) + dictionary.nspecial for i in string), dictionary.eos()]:
        row = model.decoder.table[last].double()
        row = row.masked_fill(model.decoder.impossible, float("-inf"))
        total += float(row[symbol] - row.logsumexp(0))
        last = symbol
    return total
