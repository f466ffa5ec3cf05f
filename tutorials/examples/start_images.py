"""Start here with images: a small convolutional network that names what it sees.

python tutorials/examples/start_images.py

For a folder with a subfolder of images for each class, write `nn.ImageFolder("photos")`.
"""

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the data: images (n, channels, height, width), and a class for each image
digits = nn.datasets.load_digits()
train = nn.ArrayDataset(digits.train_images.reshape(-1, 1, 8, 8), digits.train_labels)
held_out = nn.ArrayDataset(digits.held_out_images.reshape(-1, 1, 8, 8), digits.held_out_labels)


def shift(sample, generator):
    """A training image, moved by at most one pixel: new images cost nothing."""
    image, label = sample
    return nn.transforms.random_shift(image, generator, 1), label


# 2. the model: convolutions find edges and curves, the last layers decide
tn.seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    F.relu,
    nn.Conv2d(16, 32, 3, padding=1),
    F.relu,
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 4 * 4, 10),
)


# 3. the loss, and the share of right answers
def loss(model, images, labels):
    return F.softmax_cross_entropy(model(images), labels)


def accuracy(model, images, labels):
    return nn.metrics.accuracy(model(images), labels)


# 4. the training
trainer = nn.Trainer(
    model,
    loss,
    nn.Adam(model, lr=0.003),
    nn.DataLoader(train, 32, shuffle=True, transform=shift),
    validation=nn.DataLoader(held_out, 360),
    metrics={"accuracy": accuracy},
)
trainer.run(5)

# 5. the use
image, label = held_out[0]
print("the first image is a", int(F.argmax(model(image[None]))), "- the label says", label)
print(f"held-out accuracy: {100 * trainer.evaluate()['accuracy']:.1f} %")
