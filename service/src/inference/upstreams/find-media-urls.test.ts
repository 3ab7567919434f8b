import { describe, expect, test } from 'vitest'

import { findMediaUrls, mediaUrlsMax } from './find-media-urls.ts'

const url = 'http://169.254.169.254/latest/'
const inMessage = (...content: object[]) => ({ messages: [{ role: 'user', content }] })
const inItem = (item: object) => ({ input: [item] })

describe('a media URL is found, with its place', () => {
  test.each([
    // Messages
    [
      inMessage({ type: 'image', source: { type: 'url', url } }),
      'messages[0].content[0].source.url',
    ],
    [
      inMessage({ type: 'document', source: { type: 'url', url } }),
      'messages[0].content[0].source.url',
    ],
    [
      inMessage({ type: 'image', source: { type: 'base64', media_type: 'a/b', data: '', url } }),
      'messages[0].content[0].source.url',
    ],
    [
      inMessage({
        type: 'tool_result',
        tool_use_id: 't',
        content: [
          { type: 'text', text: 'a' },
          { type: 'image', source: { type: 'url', url } },
        ],
      }),
      'messages[0].content[0].content[1].source.url',
    ],
    [
      inMessage({
        type: 'document',
        source: { type: 'content', content: [{ type: 'image', source: { type: 'url', url } }] },
      }),
      'messages[0].content[0].source.content[0].source.url',
    ],
    [{ system: [{ type: 'image', source: { type: 'url', url } }] }, 'system[0].source.url'],
    [
      inMessage({
        type: 'mcp_tool_result',
        content: [{ type: 'image', source: { type: 'url', url } }],
      }),
      'messages[0].content[0].content[0].source.url',
    ],
    // Chat Completions, as OpenAI, vLLM, SGLang and llama.cpp read it
    [inMessage({ type: 'image_url', image_url: { url } }), 'messages[0].content[0].image_url.url'],
    [inMessage({ type: 'image_url', image_url: url }), 'messages[0].content[0].image_url'],
    [inMessage({ type: 'video_url', video_url: { url } }), 'messages[0].content[0].video_url.url'],
    [inMessage({ type: 'audio_url', audio_url: { url } }), 'messages[0].content[0].audio_url.url'],
    [
      inMessage({ type: 'input_audio', input_audio: { url } }),
      'messages[0].content[0].input_audio.url',
    ],
    [
      inMessage({ type: 'input_audio', input_audio: { data: url, format: 'wav' } }),
      'messages[0].content[0].input_audio.data',
    ],
    [
      inMessage({ type: 'input_video', input_video: { data: url } }),
      'messages[0].content[0].input_video.data',
    ],
    [
      inMessage({ type: 'file', file: { file_data: url } }),
      'messages[0].content[0].file.file_data',
    ],
    [inMessage({ type: 'image', image: url }), 'messages[0].content[0].image'],
    [inMessage({ type: 'image', url }), 'messages[0].content[0].url'],
    [
      inMessage({ type: 'text', text: 'a', image_url: url, uuid: 'b' }),
      'messages[0].content[0].image_url',
    ],
    [inMessage({ Image_URL: { Url: url } }), 'messages[0].content[0].Image_URL.Url'],
    [inMessage({ image_url: [url] }), 'messages[0].content[0].image_url[0]'],
    [
      { messages: [{ role: 'tool', content: [{ image_url: { url } }] }] },
      'messages[0].content[0].image_url.url',
    ],
    [{ messages: [{ role: 'user', content: 'a', images: [url] }] }, 'messages[0].images[0]'],
    // Responses
    [
      inItem({ role: 'user', content: [{ type: 'input_image', image_url: url }] }),
      'input[0].content[0].image_url',
    ],
    [
      inItem({ role: 'user', content: [{ type: 'input_file', file_url: url }] }),
      'input[0].content[0].file_url',
    ],
    [
      inItem({ role: 'user', content: [{ type: 'input_file', file_data: url }] }),
      'input[0].content[0].file_data',
    ],
    [
      inItem({ type: 'function_call_output', output: [{ type: 'input_image', image_url: url }] }),
      'input[0].output[0].image_url',
    ],
    [
      inItem({
        type: 'computer_call_output',
        output: { type: 'computer_screenshot', image_url: url },
      }),
      'input[0].output.image_url',
    ],
    [
      { prompt: { id: 'p', variables: { a: { type: 'input_image', image_url: url } } } },
      'prompt.variables.a.image_url',
    ],
    [
      { tools: [{ type: 'image_generation', input_image_mask: { image_url: url } }] },
      'tools[0].input_image_mask.image_url',
    ],
    [
      { previous_input_messages: [{ content: [{ image_url: { url } }] }] },
      'previous_input_messages[0].content[0].image_url.url',
    ],
  ])('%j', (body, path) => {
    expect(findMediaUrls(body)).toEqual([{ url, path }])
  })
})

test.each([
  'file:///etc/passwd',
  'gopher://127.0.0.1:6379/_FLUSHALL',
  'HTTP://0x7f.1/',
  ' http://10.0.0.1/',
  '/etc/secret.png',
  'secret.png',
  'video:clip',
])('whatever is fetched or opened counts as a URL: %j', (address) => {
  const body = inMessage({ type: 'image_url', image_url: { url: address } })
  expect(findMediaUrls(body)).toEqual([
    { url: address, path: 'messages[0].content[0].image_url.url' },
  ])
})

describe('not a media URL', () => {
  test.each([
    inMessage({ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }),
    inMessage({ type: 'image_url', image_url: { url: 'DATA:image/png;base64,AAAA' } }),
    inMessage({ type: 'image_url', image_url: { url: '' } }),
    inMessage({ type: 'file', file: { file_data: 'data:application/pdf;base64,AAAA' } }),
    inMessage({
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: '/9j/4' },
    }),
    inMessage({ type: 'image', source: { type: 'file', file_id: 'file_1' } }),
    inMessage({ type: 'document', source: { type: 'text', data: url } }),
    inMessage({ type: 'document', title: url, context: url, source: { type: 'text', data: 'a' } }),
    inMessage({
      type: 'search_result',
      source: url,
      title: url,
      content: [{ type: 'text', text: url }],
    }),
    inMessage({
      type: 'text',
      text: url,
      citations: [{ type: 'web_search_result_location', url }],
    }),
    inMessage({ type: 'web_search_tool_result', content: [{ type: 'web_search_result', url }] }),
    inMessage({
      type: 'web_fetch_tool_result',
      content: {
        type: 'web_fetch_result',
        url,
        content: { type: 'document', source: { type: 'text', data: url } },
      },
    }),
    inMessage({
      type: 'tool_use',
      id: 't',
      name: 'look',
      input: { image_url: url, source: { url } },
    }),
    inMessage({ type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } }),
    inMessage({ type: 'file', file: { filename: url, file_data: 'JVBERi0=' } }),
    { messages: [{ role: 'user', content: url }], system: url, user: url },
    {
      messages: [
        {
          role: 'assistant',
          tool_calls: [{ function: { name: 'a', arguments: `{"image_url":"${url}"}` } }],
        },
      ],
    },
    inItem({
      type: 'message',
      content: [{ type: 'output_text', text: url, annotations: [{ type: 'url_citation', url }] }],
    }),
    inItem({
      type: 'web_search_call',
      action: { type: 'open_page', url, sources: [{ type: 'url', url }] },
    }),
    inItem({ type: 'function_call', arguments: { image_url: url } }),
    inItem({ type: 'function_call_output', output: url }),
    { input: url, instructions: url },
    { metadata: { image_url: url }, prompt_cache_key: url },
    {
      tools: [
        {
          name: 'look',
          input_schema: { examples: [{ image_url: url }] },
          input_examples: [{ image_url: url }],
        },
      ],
    },
    {
      tools: [
        {
          type: 'function',
          function: { name: 'look', parameters: { default: { image_url: url } } },
        },
      ],
    },
    {
      response_format: {
        type: 'json_schema',
        json_schema: { schema: { default: { image_url: url } } },
      },
    },
  ])('%j', (body) => {
    expect(findMediaUrls(body)).toEqual([])
  })
})

const image = (address: string) => ({ type: 'image', source: { type: 'url', url: address } })

test('each of them is found once, in their order', () => {
  const body = { ...inMessage(image('http://a/'), image('http://b/')), input: [image('http://a/')] }
  expect(findMediaUrls(body)).toEqual([
    { url: 'http://a/', path: 'messages[0].content[0].source.url' },
    { url: 'http://b/', path: 'messages[0].content[1].source.url' },
  ])
})

test('the search ends with the first one too many', () => {
  const urls = Array.from({ length: 1000 }, (_, index) => `http://${index}/`)
  const body = inMessage(...urls.map(image))
  expect(findMediaUrls(body).map((found) => found.url)).toEqual(urls.slice(0, mediaUrlsMax + 1))
})
