/** One request as the scripted upstream recorded it. */
export type Recorded = {
  method: string
  path: string
  headers: Record<string, string>
  body: Record<string, unknown>
}

/** The requests that the upstream has received since its last reset. */
export async function recordedBy(upstreamUrl: string): Promise<Recorded[]> {
  const response = await fetch(`${upstreamUrl}/control/state`)
  return ((await response.json()) as { lastRequests: Recorded[] }).lastRequests
}

export async function clearRecords(upstreamUrl: string) {
  await fetch(`${upstreamUrl}/control/reset`, { method: 'POST' })
}

type Part = Record<string, unknown>
const listOf = (value: unknown) => (Array.isArray(value) ? (value as Part[]) : [])

/** The names of the tools that a request declares, in any format. */
export const toolNamesIn = ({ body }: Recorded): unknown[] =>
  listOf(body['tools']).map((tool) => ({ ...tool, ...(tool['function'] as Part) })['name'])

export type ToolHistory = { calls: string[]; results: { id: string; text: string }[] }

/** The tool calls in the history of a request, and their results, in any format. */
export function toolHistoryIn({ body }: Recorded): ToolHistory {
  const parts = [...listOf(body['input']), ...listOf(body['messages']).flatMap(partsOf)]
  const named = (...types: string[]) => parts.filter(({ type }) => types.includes(String(type)))
  return {
    calls: named('function_call', 'tool_use', 'function').map((call) =>
      String(call['call_id'] ?? call['id']),
    ),
    results: named('function_call_output', 'tool_result', 'tool').map((result) => ({
      id: String(result['call_id'] ?? result['tool_use_id'] ?? result['tool_call_id']),
      text: textIn(result['output'] ?? result['content']),
    })),
  }
}

/** Messages has content blocks; Chat Completions has calls beside the text, and messages with the role `tool`. */
const partsOf = ({ role, content, tool_calls: calls, ...others }: Part): Part[] =>
  role === 'tool' ? [{ ...others, type: role, content }] : [...listOf(content), ...listOf(calls)]

const textIn = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : listOf(value)
        .map(({ text }) => String(text))
        .join('')
