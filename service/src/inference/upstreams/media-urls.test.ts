import { expect, test } from 'vitest'

import { decideMediaUrls } from './media-urls.ts'

test.each([
  'http://127.0.0.1:8000/v1',
  'http://0x7f.1/v1',
  'http://10.0.0.7:8000/v1',
  'http://100.64.0.1/v1',
  'http://[::1]:8000/v1',
  'http://[fd00::7]/v1',
  'http://[::ffff:8.8.8.8]/v1',
  'http://localhost:8000/v1',
  'http://localhost./v1',
  'http://vllm:8000/v1',
  'http://VLLM.:8000/v1',
  'http://gpu.local/v1',
  'http://gpu.internal/v1',
  'http://host.docker.internal:11434/v1',
  'http://vllm.models.svc/v1',
  'http://vllm.models.svc.cluster.local/v1',
  'https://gpu.lan/v1',
  'https://gpu.corp/v1',
])('an upstream on a private network gets no media URLs: %s', (base_url) => {
  expect(decideMediaUrls({ base_url })).toBe('refuse')
})

test.each([
  'https://models.example.com/v1',
  'http://8.8.8.8:8000/v1',
  'http://[2606:4700::1111]/v1',
  'https://internal.example.com/v1',
  'https://api.anthropic.com.example.com/v1',
  'https://eu.api.openai.com/v1',
])('any other gets those of the public internet: %s', (base_url) => {
  expect(decideMediaUrls({ base_url })).toBe('public')
})

test.each(['https://api.anthropic.com/v1', 'https://API.openai.com/v1'])(
  'the vendors fetch from their own networks: %s',
  (base_url) => {
    expect(decideMediaUrls({ base_url })).toBe('any')
    expect(decideMediaUrls({ base_url, media_urls: 'public' })).toBe('any')
    expect(decideMediaUrls({ base_url, media_urls: 'refuse' })).toBe('refuse')
  },
)

test.each(['refuse', 'public', 'any'] as const)('the operator decides: %s', (media_urls) => {
  expect(decideMediaUrls({ base_url: 'http://vllm:8000/v1', media_urls })).toBe(media_urls)
  expect(decideMediaUrls({ base_url: 'https://models.example.com/v1', media_urls })).toBe(
    media_urls,
  )
})
