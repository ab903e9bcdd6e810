# Serves `pinprick web` on the CPU. It prints its address with a token; open that address with
# localhost in place of the host.
#   docker build -t pinprick .
#   docker run --rm -p 127.0.0.1:8431:8431 pinprick
# With PyTorch's build for CPUs alone, which is much smaller (its index is on PyTorch's page):
#   docker build --build-arg TORCH_INDEX=ADDRESS -t pinprick .
# Where there is no Docker, `./scripts/package clean` takes the same steps without it.
FROM python:3.12-slim AS build
COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.12-slim
ARG TORCH_INDEX
RUN pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} torch torchvision
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[demo,web]"
RUN useradd --create-home pinprick
USER pinprick
WORKDIR /home/pinprick
EXPOSE 8431
CMD ["pinprick", "web", "--host", "0.0.0.0", "--no-open"]
