import { eventsOf } from './call.ts'

// What a caller has received of a stream, in any format.

type Delta = {
  type?: string
  delta?: string | { text?: string; thinking?: string; partial_json?: string }
  choices?: {
    delta: {
      content?: string | null
      reasoning_content?: string
      tool_calls?: { function?: { arguments?: string } }[]
    }
  }[]
}

/** Everything of one kind that has arrived so far; an event that has not arrived whole does not count. */
function read(stream: string, pick: (delta: Delta) => string | null | undefined): string {
  const whole = stream.slice(0, stream.lastIndexOf('\n\n') + 2)
  return eventsOf(whole)
    .map(({ data }) => (data === '[DONE]' ? '' : (pick(data as Delta) ?? '')))
    .join('')
}

const deltaOf = ({ type, delta }: Delta, wanted: string) =>
  typeof delta === 'string' && type?.includes(wanted) ? delta : undefined
const membersOf = ({ delta }: Delta) => (typeof delta === 'object' ? delta : {})

/** The text of the answer itself. */
export const textOf = (stream: string): string =>
  read(
    stream,
    (data) =>
      deltaOf(data, 'output_text') ?? membersOf(data).text ?? data.choices?.[0]?.delta.content,
  )

export const reasoningOf = (stream: string): string =>
  read(
    stream,
    (data) =>
      deltaOf(data, 'reasoning') ??
      membersOf(data).thinking ??
      data.choices?.[0]?.delta.reasoning_content,
  )

/** The arguments of all tool calls, as their JSON was written. */
export const argumentsOf = (stream: string): string =>
  read(
    stream,
    (data) =>
      deltaOf(data, 'function_call_arguments') ??
      membersOf(data).partial_json ??
      data.choices?.[0]?.delta.tool_calls?.[0]?.function?.arguments,
  )
