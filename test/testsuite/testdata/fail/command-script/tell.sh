echo told by a file beside the steps
