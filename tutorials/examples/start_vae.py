"""Start here to make new data: a variational autoencoder that draws digits.

python tutorials/examples/start_vae.py

Replace `digits` with rows of your own numbers from 0 to 1: (examples, features).
"""

import numpy as np

import tinynode as tn
from tinynode import functions as F
from tinynode import nn

# 1. the data: images of 8 by 8 pixels, in rows of 64
digits = nn.datasets.load_digits()
train, held_out = digits.train_images, digits.held_out_images


# 2. the model: 64 numbers become a normal distribution over 8 numbers, and a draw becomes an image
class Autoencoder(nn.Module):
    """(n, features) -> scores (n, features), means and logarithms of variances (n, size)."""

    def __init__(self, features, size):
        self.encoder = nn.Sequential(nn.Linear(features, 128), F.relu, nn.Linear(128, 2 * size))
        self.decoder = nn.Sequential(nn.Linear(size, 128), F.relu, nn.Linear(128, features))

    def forward(self, x, key):
        mean, log_variance = F.split(self.encoder(x), 2, axis=1)
        noise = tn.random.normal(mean.shape, key=key)
        return self.decoder(mean + F.exp(log_variance / 2) * noise), mean, log_variance


tn.seed(0)
model = Autoencoder(train.shape[1], 8)
optimizer = nn.Adam(model, lr=0.002)


# 3. the loss: how surprising the image is, and how far the draws are from the standard normal
def surprise(scores, x):
    return F.sigmoid_cross_entropy(scores, x, reduction="sum") / len(x)


def loss_of(x, key):
    scores, mean, log_variance = model(x, key)
    far = F.sum(mean**2 + F.exp(log_variance) - log_variance - 1) / 2
    return surprise(scores, x) + far / len(x)


# 4. the training: each step has a key of its own, so a compiled step draws new noise
@tn.compile
def step(x, key):
    optimizer.cleargrads()
    loss = loss_of(x, key)
    loss.backward()
    optimizer.update()
    return loss


loader = nn.DataLoader(nn.ArrayDataset(train), 32, shuffle=True, seed=0)
key = tn.random.key(0)
for epoch in range(40):
    losses = []
    for (x,) in loader:
        key, now = tn.random.split(key)
        losses.append(step(x, now).item())
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: {np.mean(losses):.2f} nats for each image")

# 5. the result, on images that nothing was chosen by
with tn.no_grad():
    print(f"held-out images: {loss_of(held_out, tn.random.key(1)).item():.2f} nats for each image")
    share = np.broadcast_to(train.mean(axis=0).clip(1e-3, 0.999), held_out.shape)
    guess = surprise(np.log(share / (1 - share)), held_out)
    print(f"with the mean image in place of the model: {guess.item():.2f} nats")
    drawn = F.sigmoid(model.decoder(tn.random.normal((6, 8), key=tn.random.key(2))))

# 6. six new digits, side by side
for row in tn.to_host(drawn).reshape(6, 8, 8).transpose(1, 0, 2):
    print("  ".join("".join(" .:+*#"[int(5.99 * pixel)] * 2 for pixel in image) for image in row))
