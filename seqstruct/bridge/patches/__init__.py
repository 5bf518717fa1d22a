"""What of fairseq is mended: each patch says which defect."""
