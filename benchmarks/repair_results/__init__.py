"""What repairs do where the truth is known: planted worlds, CIFAR-10 and groceries."""
