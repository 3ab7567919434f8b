import type { Json } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'

const schema = {
  type: 'object',
  properties: { place: { type: 'string', description: 'Where.', enum: ['north', 'south'] } },
}
const png = 'iVBORw0KGgoAAAAN'
const text = Buffer.from('Read me.').toString('base64')

/** For tests: requests with every kind of content that callers send. */
export const richRequests: Record<CallerFormatName, Json> = {
  messages: {
    model: 'our-model',
    max_tokens: 50,
    system: [{ type: 'text', text: 'You keep the gate.', cache_control: { type: 'ephemeral' } }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look:', citations: [{ cited_text: 'quoted' }], mood: 'calm' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
          { type: 'image', source: { type: 'url', url: 'https://example.org/a.png' } },
          { type: 'image', source: { type: 'file', file_id: 'file_1' } },
          {
            type: 'document',
            source: { type: 'text', media_type: 'text/plain', data: 'A plain text.' },
            title: 'Plan',
            context: 'Old.',
          },
          {
            type: 'document',
            source: { type: 'content', content: [{ type: 'text', text: 'A block.' }] },
          },
          {
            type: 'search_result',
            source: 'https://example.org',
            title: 'Found',
            content: [{ type: 'text', text: 'A result.' }],
          },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
          { type: 'redacted_thinking', data: 'cmVk' },
          { type: 'text', text: 'I look.' },
          { type: 'tool_use', id: 'toolu_1', name: 'look', input: { place: ['north', 2] } },
          { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'gates' } },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [
              { type: 'text', text: 'It is open.' },
              { type: 'new_block', words: { deep: ['unknown words'] } },
            ],
          },
          { type: 'tool_result', tool_use_id: 'toolu_2', content: 'Bare.' },
          { type: 'text', text: 'And now?' },
        ],
      },
      {
        role: 'system',
        content: [{ type: 'text', text: 'Later instructions.', mood: 'calm' }],
        clear_at: 'next_user_message',
        output_config: { effort: 'low' },
      },
    ],
    tools: [
      { name: 'look', description: 'Looks.', input_schema: schema, hint: 'far' },
      { type: 'web_search_20250305', name: 'web_search', allowed_domains: ['example.org'] },
    ],
    tool_choice: { type: 'tool', name: 'look' },
    stop_sequences: ['END'],
    thinking: { type: 'enabled', budget_tokens: 2048, display: 'summarized' },
    output_config: { effort: 'high', format: { type: 'json_schema', schema } },
    metadata: { user_id: 'somebody' },
    mcp_servers: [{ type: 'url', url: 'https://example.org/mcp', name: 'gate' }],
  },
  responses: {
    model: 'our-model',
    instructions: 'You keep the gate.',
    input: [
      { role: 'developer', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look:', mood: 'calm' },
          { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'low' },
          { type: 'input_image', image_url: 'https://example.org/a.png' },
          { type: 'input_file', file_id: 'file_1' },
          { type: 'input_file', filename: 'a.txt', file_data: `data:text/plain;base64,${text}` },
          { type: 'input_file', filename: 'a.pdf', file_url: 'https://example.org/a.pdf' },
        ],
      },
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [{ type: 'summary_text', text: 'Hm.' }],
        content: [{ type: 'reasoning_text', text: 'Hm, hm.' }],
        encrypted_content: 'ZW5j',
      },
      {
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'I look.', annotations: [{ type: 'x', title: 'Noted' }] },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
      { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"place":"north"}' },
      { type: 'function_call_output', call_id: 'c1', output: 'It is open.' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'A patch.' },
      {
        type: 'custom_tool_call_output',
        call_id: 'c2',
        output: [{ type: 'input_text', text: 'Done.' }],
      },
      { type: 'local_shell_call_output', id: 'l1', output: 'unknown words' },
      { role: 'system', content: 'Later instructions.' },
      { role: 'user', content: 'And now?' },
    ],
    tools: [
      { type: 'function', name: 'look', description: 'Looks.', parameters: schema, hint: 'far' },
      {
        type: 'custom',
        name: 'patch',
        description: 'Patches.',
        format: { definition: 'start: x' },
      },
    ],
    tool_choice: { type: 'function', name: 'look' },
    text: { format: { type: 'json_schema', name: 'gate', schema, description: 'A gate.' } },
    reasoning: { effort: 'low', summary: 'auto' },
    user: 'somebody',
    metadata: { topic: 'gates' },
    prompt: { variables: { city: 'Paris' } },
  },
  chat_completions: {
    model: 'our-model',
    messages: [
      { role: 'system', content: 'You keep the gate.', name: 'keeper' },
      { role: 'developer', content: [{ type: 'text', text: 'Be brief.' }] },
      {
        role: 'user',
        name: 'visitor',
        content: [
          { type: 'text', text: 'Look:', mood: 'calm' },
          {
            type: 'image_url',
            image_url: { url: `data:image/png;base64,${png}` },
            caption: 'A gate.',
          },
          { type: 'image_url', image_url: { url: 'https://example.org/a.png' } },
          { type: 'file', file: { filename: 'a.txt', file_data: text } },
          { type: 'file', file: { file_id: 'file_1' } },
          { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
        ],
      },
      {
        role: 'assistant',
        content: 'I look.',
        refusal: 'No.',
        reasoning_content: 'Hm.',
        reasoning_signature: 'c2ln',
        audio: { id: 'audio_1' },
        tool_calls: [
          {
            id: 'c1',
            type: 'function',
            function: { name: 'look', arguments: '{"place":"n"}', why: 'Curious.' },
            note: 'A call.',
          },
          { id: 'c2', type: 'custom', custom: { name: 'patch', input: 'A patch.' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'It is open.' },
      { role: 'tool', tool_call_id: 'c2', content: [{ type: 'text', text: 'Done.' }] },
      { role: 'assistant', function_call: { name: 'old', arguments: '{"a":"b"}' } },
      { role: 'function', name: 'old', content: 'An old result.' },
      { role: 'system', content: 'Later instructions.' },
      { role: 'user', content: 'And now?' },
    ],
    tools: [
      {
        type: 'function',
        function: { name: 'look', description: 'Looks.', parameters: schema, hint: 'far' },
        note: 'A tool.',
      },
      { type: 'custom', custom: { name: 'patch', description: 'Patches.' } },
    ],
    functions: [{ name: 'old', description: 'Old.', parameters: schema, hint: 'far' }],
    tool_choice: { type: 'function', function: { name: 'look' } },
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'gate', schema, description: 'A gate.' },
    },
    stop: ['END'],
    user: 'somebody',
    metadata: { topic: 'gates' },
    prediction: { type: 'content', content: 'Guessed words.' },
  },
}
