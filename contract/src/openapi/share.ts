import type { Endpoint } from '../endpoint.ts'

type Json = Record<string, unknown>
export type Operation = Json & { responses: Record<string, Json> }
export type Described = { endpoint: Endpoint; operation: Operation }

/**
 * Most operations of a family answer a status alike. The commonest form of each becomes a component that they refer to,
 * named after family and status, which makes the document a quarter smaller.
 */
export function shareFailures(described: readonly Described[]) {
  const shared = new Map<string, string>()
  for (const [name, uses] of countForms(described)) {
    const [form, count] = [...uses].reduce((most, each) => (each[1] > most[1] ? each : most))
    if (count > 1) shared.set(name, form)
  }
  const refer = ({ endpoint, operation }: Described): Described => {
    const responses = Object.entries(operation.responses).map(([status, answer]) => {
      const name = nameOf(endpoint, status)
      const isShared = shared.get(name) === JSON.stringify(answer)
      return [status, isShared ? { $ref: `#/components/responses/${name}` } : answer]
    })
    return { endpoint, operation: { ...operation, responses: Object.fromEntries(responses) } }
  }
  const components = [...shared].map(([name, form]) => [name, JSON.parse(form) as Json] as const)
  return { described: described.map(refer), responses: Object.fromEntries(components) }
}

const nameOf = ({ dialect }: Endpoint, status: string) => `${dialect}.${status}`

/** How often each form of an answer occurs, by its name; successes are never shared. */
function countForms(described: readonly Described[]) {
  const counts = new Map<string, Map<string, number>>()
  for (const { endpoint, operation } of described) {
    for (const [status, answer] of Object.entries(operation.responses)) {
      if (Number(status) === endpoint.successStatus) continue
      const name = nameOf(endpoint, status)
      const uses = counts.get(name) ?? new Map<string, number>()
      const form = JSON.stringify(answer)
      counts.set(name, uses.set(form, (uses.get(form) ?? 0) + 1))
    }
  }
  return counts
}
