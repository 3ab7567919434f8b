/** Where a stack's upstreams listen. */
export type UpstreamUrls = { scripted: string; llama?: string }

const scriptedModel = (id: string, display_name: string, upstreams: readonly string[]) => ({
  id,
  display_name,
  owned_by: 'scripted',
  context_tokens: 1_000_000,
  max_output_tokens: 100_000,
  prices: { input: '3', output: '15', cached_input: '0.3', cache_write: '3.75' },
  upstreams: upstreams.map((upstream) => ({ upstream })),
})

/** The model catalogue of a throwaway stack: one model for each format that an upstream can speak. */
export function stackModels({ scripted, llama }: UpstreamUrls) {
  const base_url = `${scripted}/v1`
  const key = { env: 'UPSTREAM_KEY' }
  return {
    upstreams: {
      anthropic: { kind: 'anthropic', base_url, key, counter: 'anthropic' },
      openai: { kind: 'openai', base_url, key },
      'openai-chat': { kind: 'openai', base_url, key, formats: ['chat_completions'] },
      'openai-responses': { kind: 'openai', base_url, key, formats: ['responses'] },
      ...(llama && {
        llama: {
          kind: 'openai',
          base_url: `${llama}/v1`,
          counter: 'llama_cpp',
          formats: ['chat_completions'],
        },
      }),
    },
    models: [
      scriptedModel('claude-scripted', 'Scripted, speaks Messages', ['anthropic']),
      scriptedModel('gpt-scripted', 'Scripted, speaks Responses and Chat', ['openai']),
      scriptedModel('chat-scripted', 'Scripted, speaks Chat Completions', ['openai-chat']),
      scriptedModel('responses-scripted', 'Scripted, speaks Responses', ['openai-responses']),
      ...(llama ? [storiesModel] : []),
    ],
  }
}

const storiesModel = {
  id: 'stories',
  display_name: 'A tiny story teller',
  owned_by: 'llama',
  context_tokens: 512,
  max_output_tokens: 256,
  default_output_tokens: 128,
  prices: { input: '0.01', output: '0.02' },
  capabilities: {
    tools: false,
    images: false,
    documents: false,
    reasoning: false,
    json_schema: false,
  },
  upstreams: [{ upstream: 'llama' }],
}
