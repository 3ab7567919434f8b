import type { Json, SourceFrame } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'

const toSource = (json: Json): SourceFrame => {
  const data = JSON.stringify(json)
  return { event: '', data, json, bytes: Buffer.from(data) }
}

const chunk = (choice: Json) => ({ id: 'c', model: 'm', choices: [{ index: 0, ...choice }] })
const token = { token: 'a', logprob: -1, bytes: [97], top_logprobs: [{ token: 'b', logprob: -2 }] }
const image = `data:image/png;base64,${'A'.repeat(40)}`

const block = (index: number, content_block: Json) => ({
  type: 'content_block_start',
  index,
  content_block,
})

/** For tests: what the recorded streams do not have, one stream for each format. */
export const rareFrames: Record<CallerFormatName, SourceFrame[]> = {
  messages: [
    block(0, { type: 'mcp_tool_use', name: 'n', server_name: 's', input: { type: 't', a: ['b'] } }),
    block(1, { type: 'mcp_tool_result', is_error: false, content: [{ type: 'text', text: 'r' }] }),
    block(2, {
      type: 'bash_code_execution_tool_result',
      content: { stdout: 'o', stderr: 'e', content: [{ file_id: 'f' }] },
    }),
    block(3, { type: 'text', text: '', citations: [{ cited_text: 'q', document_title: 't' }] }),
    {
      type: 'content_block_delta',
      index: 3,
      delta: { type: 'text_delta', text: 'a', extra: 'b', deep: { c: ['d'] } },
    },
    { type: 'message_delta', delta: { stop_reason: 'stop_sequence', stop_sequence: 's' } },
    { type: 'error', error: { type: 'overloaded_error', message: 'm' } },
  ].map(toSource),
  responses: [
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { id: 'i0', type: 'mcp_call', name: 'n', server_label: 's', arguments: '' },
    },
    {
      type: 'response.mcp_call_arguments.delta',
      item_id: 'i0',
      output_index: 0,
      delta: '{"a":"b',
    },
    {
      type: 'response.mcp_call_arguments.done',
      item_id: 'i0',
      output_index: 0,
      arguments: '{"a":"b"}',
    },
    {
      type: 'response.code_interpreter_call_code.delta',
      item_id: 'i1',
      output_index: 1,
      delta: 'c',
    },
    { type: 'response.code_interpreter_call_code.done', output_index: 1, code: 'c' },
    {
      type: 'response.shell_call_output_content.delta',
      output_index: 2,
      command_index: 0,
      delta: { stdout: 'o', stderr: 'e' },
    },
    {
      type: 'response.image_generation_call.partial_image',
      output_index: 3,
      partial_image_b64: 'AAAA',
    },
    { type: 'response.audio.delta', delta: 'AAAA' },
    { type: 'response.audio.transcript.delta', delta: 't' },
    {
      type: 'response.output_text.delta',
      output_index: 4,
      content_index: 0,
      delta: 'a',
      logprobs: [token],
    },
    {
      type: 'response.output_item.done',
      output_index: 3,
      item: { type: 'image_generation_call', result: 'AAAA', revised_prompt: 'p' },
    },
    {
      type: 'response.output_item.done',
      output_index: 4,
      item: {
        type: 'message',
        content: [
          { type: 'output_text', text: 'a', logprobs: [token] },
          { type: 'output_audio', data: 'AAAA', transcript: 't' },
          'bare',
        ],
      },
    },
    { type: 'response.new.delta', output_index: 5, delta: ['x', { y: 'z' }] },
  ].map(toSource),
  chat_completions: [
    chunk({
      delta: { audio: { id: 'a', data: 'AAAA', transcript: 't' }, images: [{ url: image }] },
    }),
    chunk({ delta: { reasoning: 'r', reasoning_details: [{ index: 0, type: 't', text: 'x' }] } }),
    chunk({
      delta: {
        tool_calls: [{ index: 0, id: 'i', type: 'custom', custom: { name: 'n', input: 'p' } }],
      },
    }),
    chunk({
      delta: { content: 'a', deep: { list: ['b', { c: 'd' }] } },
      logprobs: { content: [token] },
    }),
    chunk({ delta: { content: 'b' }, message: { content: 'ab' }, note: 'n' }),
    chunk({ message: { content: [{ type: 'text', text: 'parts' }] }, finish_reason: 'stop' }),
  ].map(toSource),
}
