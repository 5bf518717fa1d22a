"""The corpora that `seqstruct prepare` makes ready, one row each.

A row's module has `add_arguments(parser, name)`, what the corpus needs beside the options of all, and `run(args)`,
which writes the folder `args.out`, and prints what it holds, from the raw files in `args.source`, or downloads them
into `args.downloads` where that is None; `args.entry` is the row's name, `args.unchecked` whether checksums and numbers
do not count.  The folder appears when it is whole: raises ValueError on what is missing, altered, malformed or empty,
or if `args.out` holds files already.  Modules are imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType

GENERATED, OWN = "generated", "own"
LDC = "Linguistic Data Consortium, by order"


@dataclass(frozen=True)
class Entry:
    """name: of the command.  module: below `seqstruct.data`.  help: one line.  licence: of the text, or `GENERATED`, or
    `OWN` where it is the user's.  use: the task of fairseq that reads the folder.  made_up: the function of
    `seqstruct.data.made_up` that writes small raw files, "module.function"; empty where there is none.  trial: options
    whose usual values ask for more text than is made up, with those that do not, words of a command line.
    """

    name: str
    module: str
    help: str
    licence: str
    use: str
    made_up: str = ""
    trial: Mapping[str, str] = field(default_factory=dict)

    def load(self) -> ModuleType:
        return import_module(f"seqstruct.data.{self.module}")

    def write_made_up(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        module, _, function = self.made_up.partition(".")
        getattr(import_module(f"seqstruct.data.made_up.{module}"), function)(folder)


CLASSIFY, TRANSLATE, LM, STREAM = "text_classification", "translation", "language_modeling", "stream_language_modeling"
# tasks that take their folder for a list with colons, of files that fairseq-preprocess takes for lists with commas
OF_LISTS = {TRANSLATE, LM, STREAM, "document_translation", "masked_lm", "sentence_prediction", "span_language_modeling"}
ENTRIES = (
    Entry("aan", "corpora.lra", "pairs of papers byte by byte: does one cite the other?",
          "ACL Anthology Network: for research", CLASSIFY, "documents.aan"),
    Entry("abilities", "abilities.prepare", "small tasks that tell mechanisms apart: recall, tracking, nesting",
          GENERATED, "symbol_tagging"),
    Entry("abilities-chart", "abilities.chart", "those of the chart of abilities, a folder each", GENERATED,
          "symbol_tagging"),
    Entry("amazon", "text_classification.folder", "reviews of electronics, with or against", "for research", CLASSIFY,
          "sentences.amazon"),
    Entry("aspec", "corpora.aspec", "ASPEC-JE, scientific abstracts, Japanese to English", "JST, by application",
          TRANSLATE, "translation.aspec", {"sample": "0", "threshold": "1"}),
    Entry("babi", "babi.folder", "one task of bAbI, stories held out for validation", "CC BY 3.0", "babi_qa",
          "sentences.babi"),
    Entry("brown", "corpora.language_modeling", "the Brown corpus, words in lower case", "non-commercial use", LM,
          "text.brown"),
    Entry("cfl", "cfl.prepare", "strings of a context-free language with true log-probabilities", GENERATED,
          "cfl_language_modeling"),
    Entry("cogs", "cogs.prepare", "COGS: sentences and their logical forms, 21 kinds of sentences held out", GENERATED,
          TRANSLATE),
    Entry("cr", "text_classification.folder", "reviews of customers, with or against", "for research", CLASSIFY,
          "sentences.cr"),
    Entry("enwik8", "corpora.byte_streams", "Wikipedia's XML of 2006, byte by byte", "CC BY-SA", STREAM, "text.enwik8"),
    Entry("europarl", "corpora.europarl", "German-English of Europarl v7 and news, as in Stack Attention",
          "free, name sources", TRANSLATE, "translation.europarl", {"vocabulary": "50"}),
    Entry("flare", "recognition.folder", "strings to recognise: members of one of FLaRe's eighteen languages, or not",
          GENERATED, "recognition"),
    Entry("glue", "corpora.glue", "a task of GLUE in RoBERTa's encoding", "for research", "sentence_prediction",
          "sentences.glue"),
    Entry("imagenet64", "corpora.byte_streams", "downsampled ImageNet, byte by byte", "ImageNet's terms, by account",
          STREAM, "documents.imagenet64"),
    Entry("imdb", "corpora.lra", "reviews of films byte by byte", "for research", CLASSIFY, "documents.imdb"),
    Entry("iwslt14", "corpora.iwslt", "talks of TED, German-English", "CC BY-NC-ND", TRANSLATE,
          "translation.iwslt14"),
    Entry("iwslt14-documents", "corpora.iwslt", "talks of TED by documents, Spanish-English", "CC BY-NC-ND",
          "document_translation", "translation.iwslt14_documents"),
    Entry("iwslt15", "corpora.iwslt", "talks of TED, English-Vietnamese, in tokens", "CC BY-NC-ND", TRANSLATE,
          "translation.iwslt15"),
    Entry("kftt", "corpora.kftt", "articles on Kyoto, Japanese-English", "CC BY-SA 3.0", TRANSLATE,
          "translation.kftt", {"vocabulary": "50"}),
    Entry("listops", "listops.folder", "ListOps by its own generator", GENERATED, CLASSIFY),
    Entry("made-up", "made_up.sized", "words without meaning, of as many types and sentences as asked", GENERATED,
          f"{LM}, {TRANSLATE}"),
    Entry("masked-lm", "corpora.masked_sentences", "Brown, SST and RTE in one encoding, to pretrain on and fine-tune",
          "non-commercial use", "masked_lm", "sentences.masked_lm"),
    Entry("multi30k", "corpora.multi30k", "captions of pictures in German, English and French", "for research",
          TRANSLATE, "translation.multi30k"),
    Entry("multi30k-words", "corpora.multi30k", "the same in words or characters", "for research", TRANSLATE,
          "translation.multi30k"),
    Entry("phrases", "corpora.phrases", "phrase pairs of a Moses phrase table", "yours", TRANSLATE,
          "translation.phrase_table", {"every": "9"}),
    Entry("ptb", "corpora.language_modeling", "Penn Treebank as text of 10,000 types (Mikolov et al. 2010)", LDC, LM,
          "text.ptb"),
    Entry("ptb-sentences", "corpora.sentences", "Penn Treebank, or stand-ins, by sentence; unknown words in classes",
          LDC, LM, "trees.ptb_sentences"),
    Entry("ptb-trees", "corpora.parsed_text", "Penn Treebank, or parses, as text with its constituents", LDC,
          "span_language_modeling", "trees.ptb_trees"),
    Entry("question-formation", "transformations.folder", "English sentences to be made questions, as a cue says",
          GENERATED, f"{LM}, {TRANSLATE}"),
    Entry("scan", "scan.prepare", "SCAN: commands and the actions that carry them out", GENERATED, TRANSLATE),
    Entry("sdp2015", "corpora.sdp2015", "semantic graphs of SDP 2015 and trees of the Penn Treebank, split", LDC,
          "joint_parsing", "graphs.sdp2015"),
    Entry("snli", "nli.folder", "pairs of sentences, SNLI or RTE, with word vectors and parses", "CC BY-SA 4.0", "nli",
          "inference.snli"),
    Entry("sst", "text_classification.folder", "Stanford sentiment treebank, whole sentences", "for research",
          CLASSIFY, "sentences.sst"),
    Entry("subj", "text_classification.folder", "subjective and objective sentences", "for research", CLASSIFY,
          "sentences.subj"),
    Entry("tense-reinflection", "transformations.folder", "English sentences in the past to be put in the present",
          GENERATED, f"{LM}, {TRANSLATE}"),
    Entry("tree-transduction", "tree_transduction.folder", "formulas in prefix notation, to be rewritten in infix",
          GENERATED, "tree_transduction"),
    Entry("ud-english", "parsing.stand_ins", "trees, graphs and classes of English, free", "CC BY-NC-SA, CC BY-SA",
          "joint_parsing", "graphs.ud_english"),
    Entry("wikitext103", "corpora.language_modeling", "WikiText-103, words", "CC BY-SA", LM, "text.wikitext103"),
    Entry("wikitext2", "corpora.language_modeling", "WikiText-2, raw words", "CC BY-SA", LM, "text.wikitext2"),
    Entry("wmt14", "corpora.wmt", "news, English to German or French", "free, by site", TRANSLATE,
          "translation.wmt14"),
    Entry("wmt16", "corpora.wmt", "news, English to Romanian", "free, by site", TRANSLATE, "translation.wmt16"),
    Entry("parallel", "text.parallel", "two aligned files of your own", OWN, TRANSLATE),
    Entry("text-classification", "text_classification.own", "labelled text of your own", OWN, CLASSIFY),
    Entry("sentence-pairs", "nli.own", "pairs of sentences with labels, of your own", OWN, "nli"),
    Entry("question-answering", "babi.own", "stories with questions of your own, in bAbI's format", OWN, "babi_qa"),
    Entry("language-model", "corpora.plain_text", "plain text of your own", OWN, LM),
    Entry("phrase-table", "text.phrase_extraction", "a phrase table of two aligned files of your own", OWN,
          "seqstruct prepare phrases"),
    Entry("word-vectors", "text.skip_gram", "skip-gram vectors of text of your own", OWN,
          "seqstruct prepare sst ... --vectors"),
    Entry("word-pairs", "text.word_pairs", "two aligned files of your own, in words or characters", OWN, TRANSLATE),
    Entry("parsing", "parsing.folder", "trees and graphs of your own, CoNLL-U or SDP, and classified sentences", OWN,
          "joint_parsing"),
)


def find(name: str) -> Entry:
    """A row by its name; "_" is "-".  Raises ValueError that lists the names."""
    for entry in ENTRIES:
        if entry.name == name.replace("_", "-"):
            return entry
    raise ValueError(f"expected a corpus of {', '.join(entry.name for entry in ENTRIES)}, got {name!r}")
