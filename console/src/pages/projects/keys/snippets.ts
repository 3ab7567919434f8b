type Snippet = { name: string; text: string }

const model = 'MODEL'

const openAi = ({ url, secret }: Place) => ({
  python: `from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key="${secret}")
answer = client.responses.create(model="${model}", input="Hello")
print(answer.output_text)`,
  typescript: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${url}/v1', apiKey: '${secret}' })
const answer = await client.responses.create({ model: '${model}', input: 'Hello' })
console.log(answer.output_text)`,
})

const anthropic = ({ url, secret }: Place) => ({
  python: `from anthropic import Anthropic

client = Anthropic(base_url="${url}", api_key="${secret}")
message = client.messages.create(
    model="${model}", max_tokens=1024, messages=[{"role": "user", "content": "Hello"}]
)
print(message.content[0].text)`,
  typescript: `import Anthropic from '@anthropic-ai/sdk'

const client = new Anthropic({ baseURL: '${url}', apiKey: '${secret}' })
const message = await client.messages.create({
  model: '${model}',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(message.content)`,
})

const curl = ({ url, secret }: Place) => `curl ${url}/v1/chat/completions \\
  -H 'Authorization: Bearer ${secret}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`

const environment = ({ url, secret }: Place) => `export OPENAI_BASE_URL=${url}/v1
export OPENAI_API_KEY=${secret}
export ANTHROPIC_BASE_URL=${url}
export ANTHROPIC_API_KEY=${secret}`

type Place = { url: string; secret: string }

/** A first call in each SDK, ready to paste. The model is the reader's to choose. */
export const snippetsFor = (place: Place): readonly Snippet[] => [
  { name: 'OpenAI, Python', text: openAi(place).python },
  { name: 'OpenAI, TypeScript', text: openAi(place).typescript },
  { name: 'Anthropic, Python', text: anthropic(place).python },
  { name: 'Anthropic, TypeScript', text: anthropic(place).typescript },
  { name: 'curl', text: curl(place) },
  { name: 'Environment variables', text: environment(place) },
]
