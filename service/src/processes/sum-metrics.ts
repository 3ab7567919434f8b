import { AggregatorRegistry, Counter, Gauge, Registry } from 'prom-client'

/** The metrics of one process, as its registry gives them. */
export type MetricList = Awaited<ReturnType<Registry['getMetricsAsJSON']>>

/**
 * The metrics of all processes as those of one. Each metric says how its values are combined (platform/metrics.ts);
 * without a word they are added.
 */
export function createMetricSums() {
  const own = new Registry()
  const registers = [own]
  /** The last known counts of processes that have ended: a sum that falls would look like a restart of all of them. */
  let ended = Promise.resolve<MetricList>([])
  return {
    running: new Gauge({
      name: 'gatehouse_processes',
      help: 'API processes that serve, of those that PROCESSES asks for.',
      registers,
    }),
    restarts: new Counter({
      name: 'gatehouse_process_restarts_total',
      help: 'Starts of processes in place of others that had ended.',
      registers,
    }),
    contentType: own.contentType,
    /** Keeps the counts of a process that has ended. */
    keep(metrics: MetricList) {
      const counts = metrics.filter(({ type }) => isCount(type))
      ended = ended.then((before) => combine([before, counts]).getMetricsAsJSON())
    },
    async print(readAll: () => Promise<MetricList[]>): Promise<string> {
      // Copied first, so that a process that ends in the meantime is not counted twice.
      const before = await ended
      const lists = await readAll()
      return combine([...lists, before, await own.getMetricsAsJSON()]).metrics()
    },
  }
}
export type MetricSums = ReturnType<typeof createMetricSums>

const combine = (lists: readonly MetricList[]) => AggregatorRegistry.aggregate([...lists])

/** prom-client declares `type` as a number, but it is a string. */
const isCount = (type: unknown) => type === 'counter' || type === 'histogram'
