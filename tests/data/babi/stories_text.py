"""A few stories for the tests of bAbI."""

STORY = (
    "1 Mary moved to the bathroom.\n"
    "2 John went to the hallway.\n"
    "3 Where is Mary? \tbathroom\t1\n"
    "4 Daniel took the milk there.\n"
    "5 How do you go from the hallway to the bathroom?\tn,w\t4 2\n"
)
OTHER = "1 Lily is a frog.\n2 Lily is green.\n3 What color is Lily?\tgreen\t1 2\n"
