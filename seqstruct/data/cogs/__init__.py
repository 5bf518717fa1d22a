"""COGS (Kim and Linzen 2020): English sentences and their logical forms, with 21 kinds of sentences held out."""
