"""The front door: records of protocols, the questions to ask of them, and the answers, in a file for each document."""
