"""Made-up raw files, one function of a folder for each corpus (`seqstruct.data.registry` names them).

They have the names and the format of the real ones, so that the same commands read them; what they say proves nothing.
They are small and always the same.
"""
