import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.btrplace.model.DefaultModel;
import org.btrplace.model.Model;
import org.btrplace.model.Node;
import org.btrplace.model.VM;
import org.btrplace.model.constraint.Fence;
import org.btrplace.model.constraint.MinMigrations;
import org.btrplace.model.constraint.Running;
import org.btrplace.model.constraint.SatConstraint;
import org.btrplace.model.view.ShareableResource;
import org.btrplace.plan.ReconfigurationPlan;
import org.btrplace.plan.event.Action;
import org.btrplace.plan.event.BootVM;
import org.btrplace.plan.event.MigrateVM;
import org.btrplace.scheduler.choco.ChocoScheduler;
import org.btrplace.scheduler.choco.DefaultChocoScheduler;
import org.btrplace.scheduler.choco.duration.LinearToAResourceActionDuration;

/**
 * Reads an instance (see instance.py) and prints an answer (see answer.py).
 *
 * <p>A migration lasts one unit for each GiB, so that the fewest units mean the fewest bytes.
 */
public final class FitDriver {
  private final Model model = new DefaultModel();
  private final ShareableResource cpu = new ShareableResource("cpu", 0, 0);
  private final ShareableResource memory = new ShareableResource("memory", 0, 0);
  private final List<Node> nodes = new ArrayList<>();
  private final List<Set<Node>> classes = new ArrayList<>();
  private final List<VM> vms = new ArrayList<>();
  private final List<SatConstraint> constraints = new ArrayList<>();
  private int gib = 0;

  public static void main(String[] arguments) throws Exception {
    FitDriver driver = new FitDriver();
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      driver.read(line.trim().split(" "));
    }
    driver.solve(Integer.parseInt(arguments[1]));
  }

  private void read(String[] words) {
    switch (words[0]) {
      case "node" -> {
        Node node = model.newNode();
        model.getMapping().addOnlineNode(node);
        cpu.setCapacity(node, Integer.parseInt(words[1]));
        memory.setCapacity(node, Integer.parseInt(words[2]));
        nodes.add(node);
      }
      case "class" -> {
        Set<Node> allowed = new HashSet<>();
        for (int i = 1; i < words.length; i++) {
          allowed.add(nodes.get(Integer.parseInt(words[i])));
        }
        classes.add(allowed);
      }
      case "vm" -> {
        Node node = nodes.get(Integer.parseInt(words[1]));
        VM vm = newVM(words);
        model.getMapping().addRunningVM(vm, node);
        Set<Node> allowed = new HashSet<>(classes.get(Integer.parseInt(words[4])));
        allowed.add(node);
        constraints.add(new Fence(vm, allowed));
        vms.add(vm);
      }
      case "pending" -> {
        VM vm = newVM(words);
        model.getMapping().addReadyVM(vm);
        constraints.add(new Running(vm));
        constraints.add(new Fence(vm, classes.get(Integer.parseInt(words[4]))));
      }
      default -> throw new IllegalArgumentException(words[0]);
    }
  }

  private VM newVM(String[] words) {
    VM vm = model.newVM();
    cpu.setConsumption(vm, Integer.parseInt(words[2]));
    memory.setConsumption(vm, Integer.parseInt(words[3]));
    gib += Integer.parseInt(words[3]) / 1024 + 1;
    return vm;
  }

  private void solve(int limitSeconds) {
    model.attach(cpu);
    model.attach(memory);
    ChocoScheduler scheduler = new DefaultChocoScheduler();
    scheduler.doOptimize(true);
    scheduler.doRepair(false);
    scheduler.setTimeLimit(limitSeconds);
    // Its horizon is a guess; all VMs one after the other is long enough for any plan.
    scheduler.setMaxEnd(gib);
    scheduler
        .getDurationEvaluators()
        .register(MigrateVM.class, new LinearToAResourceActionDuration<VM>("memory", 1 / 1024.0, 1));
    long start = System.nanoTime();
    ReconfigurationPlan plan = scheduler.solve(model, constraints, new MinMigrations());
    double seconds = (System.nanoTime() - start) / 1e9;
    boolean isDone = scheduler.getStatistics().completed();
    System.out.printf(Locale.ROOT, "seconds %.3f%n", seconds);
    System.out.println("status " + (plan == null ? (isDone ? "impossible" : "none") : (isDone ? "proven" : "found")));
    if (plan == null) {
      return;
    }
    // Iterates in the order of their start.
    for (Action action : plan) {
      if (action instanceof MigrateVM move) {
        System.out.println("move " + vms.indexOf(move.getVM()) + " " + nodes.indexOf(move.getDestinationNode()));
      } else if (action instanceof BootVM boot) {
        System.out.println("landing " + nodes.indexOf(boot.getDestinationNode()));
      }
    }
  }
}
