FROM python:3.11-slim AS build
WORKDIR /build
RUN python -m venv --without-pip /opt/rebalancer
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_PYTHON=/opt/rebalancer/bin/python
# In a layer of their own: the dependencies change less often than the code.
COPY requirements.lock .
RUN pip install --require-hashes --only-binary :all: -r requirements.lock
COPY . .
RUN pip install --no-deps .

FROM python:3.11-slim
COPY --from=build /opt/rebalancer /opt/rebalancer
ENV PATH=/opt/rebalancer/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
ENTRYPOINT ["rebalancer"]
