"""Models that read one or two sentences, or facts: classifiers, inference, question answering, transduction."""
