"""The words of COGS: nouns, names and verbs by class, the most frequent first.

The classes, and the words that are held out, are those of Kim and Linzen (2020, sec. 3 and appendix); all other words
are our own choice.  A verb is its lemma, or lemma/past/participle where these are not regular.
"""

from __future__ import annotations

NOUNS = {
    "animate": """girl dog boy cat farmer nurse lion teacher baker rabbit child pilot monkey sailor king horse doctor
        fox painter tiger queen goat student bear singer duck knight mouse lawyer camel dancer wolf chef frog pirate
        sheep driver parrot gardener zebra judge beaver clown deer hunter pigeon baby falcon weaver donkey tailor
        penguin plumber turtle captain squirrel waiter badger monk crow wizard puppy shepherd kitten carpenter swan
        drummer hamster butcher lizard scholar panda diver beetle surgeon goose jeweler moth merchant raven poet
        spider guest magpie guard heron tourist walrus miner gorilla barber dolphin priest rooster scout leopard
        mayor hare rhino gecko""",
    "thing": """cake box ball book rose cookie hat drum pencil bottle lamp sandwich coin ring basket carrot letter
        muffin kite spoon candle melon blanket mug violin pancake shirt puzzle peach ladder pillow bracelet hammer
        pizza wheel lemon map brush button pumpkin mirror flute cherry rope helmet bagel trophy ticket walnut shovel
        scarf magnet pretzel feather bucket cheese pot radio compass waffle kettle needle berry glove trumpet potato
        jar sock turnip banner lantern biscuit fork medal parcel broom pie crystal stamp brick doughnut paddle noodle
        razor daisy tulip sponge marble napkin raisin sweater guitar saddle vest cabbage dumpling crown telescope
        wallet mitten""",
    "on": """table chair bed shelf bench rock stage sofa roof boat desk carpet stool floor tree tray bridge deck counter
        wall hill log plate rug couch piano road beach cart stump raft cushion porch ledge stone mat balcony pedestal
        towel throne truck crate sled trampoline platform mattress pier hammock tile box""",
    "in": """house garden car box room kitchen basket cup tent bag barn cave river drawer bowl closet pool cage forest
        cabin pocket vase castle bathtub cellar nest tower jar truck wagon bucket library tunnel chest pond sack theater
        shed cupboard barrel hallway museum bakery trunk hole van crate suitcase lobby glass""",
    "beside": """table house tree bed river lamp chair car rock road fence statue door bench piano fountain pond tent
        stove window boat gate barn tower bush fireplace bicycle mailbox lake well throne shop telephone ladder truck
        pillar hedge school train ferry lighthouse chimney bridge mountain tractor billboard harbor staircase church
        wardrobe""",
}
NAMES = """Emma Noah Lucy Peter Clara Henry Alice Oscar Nora Jacob Rosa Simon Maya Leo Ruth Felix Anna David Julia Max
    Hannah Thomas Sarah Adam Grace Victor Helen Martin Ivy George Laura Samuel Molly Robert Diana Arthur Ella Hugo Marie
    Walter Sofia Daniel Irene Philip Greta Edward Naomi Frank Tessa Albert Wendy Louis Vera Oliver Judith Conrad Amber
    Bruno Carmen Dominic Esther Gabriel Hazel Isaac Joan Kevin Lydia Marcus Nadia Owen Petra Quentin Rachel Stefan
    Teresa Ulrich Violet Wesley Yvonne Zachary Bella Caleb Doris Ethan Fiona Gilbert Heidi Ivan Josie Keith Lorna Miles
    Nina Otto Priya Ralph Selma Trevor Ursula Vincent"""
VERBS = {
    "optional": """eat/ate/eaten paint cook draw/drew/drawn clean hunt sing/sang/sung write/wrote/written wash study
        sketch sweep/swept read/read sew/sewed/sewn carve film dust teach/taught polish drink/drank/drunk""",
    "transitive": """like love help find/found admire hold/held touch visit carry greet catch/caught push respect
        hug/hugged trust avoid kick notice praise miss""",
    "alternating": """roll melt freeze/froze/frozen break/broke/broken burn grow/grew/grown float bend/bent crack
        sink/sank/sunk bounce spin/spun split/split shrink/shrank/shrunk change swell/swelled/swollen snap/snapped fold
        stretch cool""",
    "unergative": """sleep/slept smile laugh run/ran dance sneeze walk cry jump talk swim/swam yawn cough nap/napped
        scream whistle frown snore giggle march""",
    "clausal": """say/said think/thought believe hope know/knew notice claim like dream mean/meant hear/heard guess
        imagine wish admire admit/admitted doubt fear declare prove""",
    "control": """want hope try like need love plan/planned wish prefer/preferred expect mean/meant hate intend agree
        decide dream refuse attempt learn long""",
    "dative": """give/gave/given send/sent sell/sold offer lend/lent pass bring/brought hand feed/fed show/showed/shown
        throw/threw/thrown serve promise award mail toss rent loan grant post""",
}
BARE = "eat walk paint sleep cook run draw dance clean sneeze hunt jump sing nap write smile read talk sketch laugh"
HELD_OUT_VERBS = "bless squeeze bake shatter teleport ship/shipped crawl"
EXPONENT, ZETA = 1.4, 3.1055472779775806  # of Zipf's law, and the sum of rank ** -EXPONENT over all ranks


def inflected(verb: str) -> tuple[str, str, str]:
    """Lemma, past and participle of a verb as it is written above."""
    lemma, *given = verb.split("/")
    end = "d" if lemma.endswith("e") else "ied" if lemma[-1] == "y" and lemma[-2] not in "aeiou" else "ed"
    past = given[0] if given else lemma.removesuffix("y" if end == "ied" else "") + end
    return lemma, past, given[-1] if given else past


FORMS = {name: [inflected(verb) for verb in verbs.split()] for name, verbs in VERBS.items()}
_EVERY = [forms for each in FORMS.values() for forms in each] + [inflected(verb) for verb in HELD_OUT_VERBS.split()]
LEMMAS = {form: lemma for lemma, *forms in _EVERY for form in (lemma, *forms)}


def zipf(count: int) -> list[float]:
    """Probabilities of `count` words by rank: Zipf's law, what it leaves to later ranks shared equally."""
    law = [rank**-EXPONENT / ZETA for rank in range(1, count + 1)]
    return [probability + (1 - sum(law)) / count for probability in law]


def lexical_rules() -> list[str]:
    """The words as rules: Noun.CLASS, Name, Verb.CLASS (past), Participle.CLASS and Verb.bare."""
    found = {f"Noun.{name}": words.split() for name, words in NOUNS.items()} | {"Name": NAMES.split()}
    for name, forms in FORMS.items():
        found |= {f"Verb.{name}": [past for _, past, _ in forms], f"Participle.{name}": [last for *_, last in forms]}
    found["Verb.bare"] = BARE.split()
    return [
        f"{symbol} -> " + " | ".join(f'"{word}" [{p!r}]' for word, p in zip(words, zipf(len(words)), strict=True))
        for symbol, words in found.items()
    ]
