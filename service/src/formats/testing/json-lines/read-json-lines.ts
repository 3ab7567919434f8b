import { type AnswerEvent, type Json, type Reader, type Usage, noUsage } from '#formats/answer.ts'
import { asObject, asText, tokensOf } from '#formats/json-values.ts'
import { toProviderError } from '#formats/provider-failure.ts'

/** Reads `{begin}`, then `{text}` and `{tool}` lines, then `{end, counts}`. */
export function createJsonLinesReader(): Reader {
  let blockCount = 0
  let isFinished = false

  function readBlock(line: Json): AnswerEvent[] {
    const tool = asObject(line['tool'])
    const text = asText(line['text'])
    if (!tool && text === undefined) return []
    const index = blockCount++
    const { id, name, input } = tool ?? {}
    return [
      {
        type: 'block_started',
        index,
        block: tool ? { type: 'tool_call', id: String(id), name: String(name) } : { type: 'text' },
      },
      { type: 'block_delta', index, text: text ?? JSON.stringify(input) },
      { type: 'block_ended', index },
    ]
  }

  return {
    read({ json: line }) {
      const begin = asObject(line['begin'])
      const end = asObject(line['end'])
      const problem = asText(line['problem'])
      if (problem !== undefined) throw toProviderError({ message: problem, type: null, code: null })
      if (begin) {
        return [{ type: 'started', id: String(begin['id']), model: 'm', usage: noUsage }]
      }
      if (!end) return readBlock(line)
      isFinished = true
      const reason = end['why'] === 'tool' ? 'tool_call' : 'end'
      return [{ type: 'finished', reason, stopSequence: null, usage: readCounts(line) }]
    },
    isFinished: () => isFinished,
  }
}

function readCounts(line: Json): Usage {
  const counts = asObject(line['counts']) ?? {}
  return {
    ...noUsage,
    inputTokens: tokensOf(counts['read']),
    outputTokens: tokensOf(counts['written']),
  }
}
