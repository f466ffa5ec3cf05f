from mynode.nn.image_layers import Conv2d, Flatten, MaxPool2d
