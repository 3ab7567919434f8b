import type { DestinationCall, DestinationDeps } from '#exports/destinations/destination.ts'
import { createEgress } from '#platform/egress.ts'

type Target = { readonly endpoint: string; readonly ca?: string }
type OpenDeps = DestinationDeps & AsyncDisposable & { readonly calls: DestinationCall[] }

/** Calls servers of this machine through the guarded client of the service, and keeps what was called. */
export function openDeps(targets: readonly Target[], now: () => Date = () => new Date()): OpenDeps {
  const egress = createEgress({
    privateTargets: targets.map(({ endpoint }) => new URL(endpoint).host),
    ca: targets.flatMap(({ ca }) => ca ?? []),
  })
  const calls: DestinationCall[] = []
  return {
    calls,
    request(address, call) {
      calls.push(call)
      const { tls: _, answerLimitBytes = 64 * 1024, ...rest } = call
      return egress.request(address, { ...rest, answerLimitBytes, deadlineMs: 10_000 })
    },
    now,
    signal: new AbortController().signal,
    [Symbol.asyncDispose]: () => egress.close(),
  }
}
