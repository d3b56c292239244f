// The network and the training of examples/mnist.py as a libtorch program: no Python.
//
//   mnist DIR [--device xla] [--epochs 6] [--batch-size 64] [--hold-out 1500] [--seed 0]
//
// DIR holds MNIST's IDX files, gzipped or not; `examples/mnist.py --export DIR` writes scikit-learn's digits as such
// files.
#include <torch/torch.h>
#include <torch_pjrt/api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Examples {
  torch::Tensor images;  // [N, 1, H, W] float32
  torch::Tensor labels;  // [N] int64
  int64_t size() const { return labels.size(0); }
};

struct Data {
  Examples train;
  Examples test;
};

struct PipeCloser {
  void operator()(FILE* pipe) const { pclose(pipe); }
};

// The file's contents, through gzip where its name says so.
std::string read_file(const fs::path& path) {
  std::string quoted = path.string();
  for (size_t at = 0; (at = quoted.find('\'', at)) != std::string::npos; at += 4) quoted.replace(at, 1, "'\\''");
  const std::string command = (path.extension() == ".gz" ? "gzip -dc -- '" : "cat -- '") + quoted + "'";
  const std::unique_ptr<FILE, PipeCloser> pipe(popen(command.c_str(), "r"));
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string content;
  std::array<char, 1 << 16> chunk;
  while (const size_t n = fread(chunk.data(), 1, chunk.size(), pipe.get())) content.append(chunk.data(), n);
  return content;
}

// The array in an IDX file of unsigned bytes.
torch::Tensor read_idx(const fs::path& path) {
  const std::string content = read_file(path);
  if (content.size() < 4 || content.compare(0, 3, std::string("\0\0\x08", 3)) != 0)
    throw std::runtime_error(path.string() + ": not an IDX file of unsigned bytes");
  const auto byte = [&](size_t at) { return static_cast<int64_t>(static_cast<unsigned char>(content.at(at))); };
  std::vector<int64_t> dims;
  size_t at = 4;
  for (int64_t i = 0; i < byte(3); ++i, at += 4)
    dims.push_back(byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3));
  const int64_t size = c10::multiply_integers(dims);
  if (static_cast<int64_t>(content.size() - at) != size)
    throw std::runtime_error(path.string() + ": its header and its length disagree");
  return torch::from_blob(const_cast<char*>(content.data() + at), dims, torch::kByte).clone();
}

std::optional<fs::path> find_file(const fs::path& folder, const std::string& part, const std::string& kind) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.starts_with(part) && name.find(kind) != std::string::npos &&
        name.find("idx") != std::string::npos)
      found.push_back(entry.path());
  }
  if (found.empty()) return std::nullopt;
  return *std::min_element(found.begin(), found.end());
}

std::optional<Examples> find_pair(const fs::path& folder, const std::string& part) {
  const auto images = find_file(folder, part, "images");
  const auto labels = find_file(folder, part, "labels");
  if (!images || !labels) return std::nullopt;
  return Examples{read_idx(*images).unsqueeze(1).to(torch::kFloat), read_idx(*labels).to(torch::kLong)};
}

Data load(const fs::path& folder, int64_t hold_out) {
  std::optional<Examples> train = find_pair(folder, "train");
  std::optional<Examples> test = find_pair(folder, "t10k");
  if (!train && !test) throw std::runtime_error(folder.string() + ": no train-images or t10k-images IDX files");
  if (!train || !test) {
    const Examples all = train ? *train : *test;
    const torch::Tensor order = torch::randperm(all.size());
    const torch::Tensor kept = order.slice(0, 0, hold_out);
    const torch::Tensor rest = order.slice(0, hold_out);
    test = Examples{all.images.index({kept}), all.labels.index({kept})};
    train = Examples{all.images.index({rest}), all.labels.index({rest})};
  }
  const torch::Tensor mean = train->images.mean();
  const torch::Tensor std = train->images.std();
  for (Examples* examples : {&*train, &*test}) examples->images = (examples->images - mean) / std;
  return {*train, *test};
}

struct NetImpl : torch::nn::Module {
  NetImpl(int64_t height, int64_t width) {
    using namespace torch::nn;  // NOLINT(google-build-using-namespace): the layers' names are the point here
    const auto conv = [](int64_t in, int64_t out) { return Conv2d(Conv2dOptions(in, out, 3).padding(1).bias(false)); };
    features = register_module(
        "features", Sequential(conv(1, 16), BatchNorm2d(16), ReLU(), MaxPool2d(2), conv(16, 32), BatchNorm2d(32),
                               ReLU(), conv(32, 32), BatchNorm2d(32), ReLU(), MaxPool2d(2), Dropout(0.25)));
    classifier = register_module("classifier", Sequential(Flatten(), Linear(32 * (height / 4) * (width / 4), 128),
                                                          ReLU(), Dropout(0.5), Linear(128, 10)));
  }
  // images [N, 1, H, W] -> logits [N, 10]
  torch::Tensor forward(const torch::Tensor& images) { return classifier->forward(features->forward(images)); }

  torch::nn::Sequential features{nullptr};
  torch::nn::Sequential classifier{nullptr};
};
TORCH_MODULE(Net);

// torch.optim.lr_scheduler.OneCycleLR without a cycle of the momentum.
double one_cycle(int64_t step, int64_t total_steps, double highest) {
  const auto between = [](double from, double to, double fraction) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * fraction));
  };
  const double peak = 0.3 * static_cast<double>(total_steps) - 1;
  const auto now = static_cast<double>(step);
  if (now <= peak) return between(highest / 25, highest, now / peak);
  return between(highest, highest / 25 / 1e4, (now - peak) / (static_cast<double>(total_steps) - 1 - peak));
}

class Trainer {
 public:
  Trainer(Data data, torch::Device device, int64_t epochs, int64_t batch_size)
      : data_(std::move(data)),
        device_(device),
        batch_size_(batch_size),
        steps_(data_.train.size() / batch_size),
        total_steps_(epochs * steps_),
        net_(data_.train.images.size(2), data_.train.images.size(3)) {
    net_->to(device_);
    optimizer_ = std::make_unique<torch::optim::SGD>(
        net_->parameters(), torch::optim::SGDOptions(kHighestRate).momentum(0.9).nesterov(true).weight_decay(5e-4));
  }

  // One pass over the training images; the mean loss.
  double train_epoch() {
    net_->train();
    std::vector<torch::Tensor> losses;
    const torch::Tensor order = torch::randperm(data_.train.size());
    for (int64_t i = 0; i < steps_; ++i) {
      const torch::Tensor rows = order.slice(0, i * batch_size_, (i + 1) * batch_size_);
      for (auto& group : optimizer_->param_groups())
        group.options().set_lr(one_cycle(step_, total_steps_, kHighestRate));
      optimizer_->zero_grad();
      const torch::Tensor logits = net_->forward(data_.train.images.index({rows}).to(device_));
      const torch::Tensor loss =
          torch::nn::functional::cross_entropy(logits, data_.train.labels.index({rows}).to(device_));
      loss.backward();
      optimizer_->step();
      sync();
      losses.push_back(loss.detach());
      ++step_;
    }
    double sum = 0;
    for (const torch::Tensor& loss : losses) sum += loss.item<double>();
    return sum / static_cast<double>(steps_);
  }

  // Accuracy on the test images, in percent. The last batch is filled up with images of label -1.
  double test() {
    net_->eval();
    const torch::NoGradGuard no_grad;
    std::vector<torch::Tensor> correct;
    for (int64_t start = 0; start < data_.test.size(); start += batch_size_) {
      torch::Tensor images = data_.test.images.slice(0, start, start + batch_size_);
      torch::Tensor labels = data_.test.labels.slice(0, start, start + batch_size_);
      const int64_t missing = batch_size_ - labels.size(0);
      images = torch::constant_pad_nd(images, {0, 0, 0, 0, 0, 0, 0, missing});
      labels = torch::constant_pad_nd(labels, {0, missing}, -1);
      correct.push_back((net_->forward(images.to(device_)).argmax(1) == labels.to(device_)).sum());
      sync();
    }
    int64_t sum = 0;
    for (const torch::Tensor& count : correct) sum += count.item<int64_t>();
    return 100.0 * static_cast<double>(sum) / static_cast<double>(data_.test.size());
  }

  int64_t images_per_epoch() const { return steps_ * batch_size_; }

 private:
  static constexpr double kHighestRate = 0.1;

  void sync() {
    if (device_.is_xla()) torch_pjrt::api::sync(-1, /*wait=*/false);
  }

  Data data_;
  torch::Device device_;
  int64_t batch_size_;
  int64_t steps_;
  int64_t total_steps_;
  int64_t step_ = 0;
  Net net_;
  std::unique_ptr<torch::optim::SGD> optimizer_;
};

void print_statistics() {
  int64_t runs = 0;
  double seconds = 0;
  const auto programs = torch_pjrt::api::executables();
  for (const auto& program : programs) {
    runs += program.runs;
    seconds += program.compile_seconds;
  }
  std::printf("compiles: %zu (%.1f s), runs: %lld\n", programs.size(), seconds, static_cast<long long>(runs));
  int64_t fallbacks = 0;
  for (const auto& [name, count] : torch_pjrt::api::counters()) {
    if (name.starts_with("aten::")) fallbacks += count;
  }
  std::printf("fallbacks: %lld\n", static_cast<long long>(fallbacks));
}

void run(const fs::path& folder, std::map<std::string, std::string> options) {
  const int64_t epochs = std::stoll(options.at("epochs"));
  const int64_t batch_size = std::stoll(options.at("batch-size"));
  const torch::Device device(options.at("device"));
  torch::manual_seed(std::stoll(options.at("seed")));
  if (device.is_xla()) torch_pjrt::api::manual_seed(std::stoull(options.at("seed")));

  Data data = load(folder, std::stoll(options.at("hold-out")));
  std::printf("data: IDX files in %s: %lld images to train, %lld to test\n", folder.c_str(),
              static_cast<long long>(data.train.size()), static_cast<long long>(data.test.size()));
  Trainer trainer(std::move(data), device, epochs, batch_size);
  double accuracy = 0;
  for (int64_t epoch = 1; epoch <= epochs; ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    const double loss = trainer.train_epoch();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    accuracy = trainer.test();
    std::printf("epoch %lld: loss %.4f, test accuracy %.2f %%, %.0f images/s\n", static_cast<long long>(epoch), loss,
                accuracy, static_cast<double>(trainer.images_per_epoch()) / seconds);
    std::fflush(stdout);
  }
  if (device.is_xla()) print_statistics();
  std::printf("final test accuracy: %.2f %%\n", accuracy);
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> options = {
      {"device", "xla"}, {"epochs", "6"}, {"batch-size", "64"}, {"hold-out", "1500"}, {"seed", "0"}};
  std::string folder;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto option = argument.starts_with("--") ? options.find(argument.substr(2)) : options.end();
    if (option != options.end() && i + 1 < argc) {
      option->second = argv[++i];
    } else if (folder.empty() && !argument.starts_with("--")) {
      folder = argument;
    } else {
      std::cerr << "mnist: unknown argument " << argument << '\n';
      return 2;
    }
  }
  if (folder.empty()) {
    std::cerr << "usage: mnist DIR [--device xla] [--epochs 6] [--batch-size 64] [--hold-out 1500] [--seed 0]\n";
    return 2;
  }
  try {
    run(folder, options);
  } catch (const std::exception& error) {
    std::cerr << "mnist: " << error.what() << '\n';
    return 1;
  }
}
