import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { createChatCompletion } from '@gatehouse/contract/chat-completion'
import { createMessage } from '@gatehouse/contract/message'
import { createResponse } from '@gatehouse/contract/response'
import { expect, test } from 'vitest'

import { callerFormats, upstreamFormats } from './formats.ts'
import { pickForwardedHeaders } from './forwarded-headers.ts'
import { emptyTurn } from './turn.ts'

test('callers of each format get errors in the dialect of their endpoint', () => {
  const { messages, responses, chat_completions } = callerFormats
  expect([messages, responses, chat_completions].map((format) => format.errorDialect)).toEqual(
    [createMessage, createResponse, createChatCompletion].map(({ dialect }) => dialect),
  )
})

test('an upstream that speaks a caller’s format gets the caller’s own request', () => {
  for (const [name, format] of Object.entries(callerFormats)) {
    expect(format.name).toBe(name)
    expect(upstreamFormats.get(name)?.forwardRequest).toBeTypeOf('function')
  }
})

test.each([
  ['messages', '/messages', { 'x-api-key': 'secret' }],
  ['responses', '/responses', { authorization: 'Bearer secret' }],
  ['chat_completions', '/chat/completions', { authorization: 'Bearer secret' }],
])('%s: requests go to %s with %j', (name, path, headers) => {
  const format = upstreamFormats.get(name)
  expect([format?.pathOf('any'), format?.authorize('secret')]).toEqual([path, headers])
})

const usage = { input_tokens: 1 }

test.each([
  ['messages', { type: 'message_start', message: { usage } }, usage],
  ['messages', { type: 'message_delta', usage }, usage],
  ['messages', { type: 'message_start', message: {} }, undefined],
  ['responses', { type: 'response.completed', response: { usage } }, usage],
  ['responses', { type: 'response.created', response: { usage: null } }, undefined],
  ['chat_completions', { choices: [], usage }, usage],
  ['chat_completions', { choices: [], usage: null }, undefined],
])('%s: the usage of %j is found', (name, frame, expected) => {
  expect(upstreamFormats.get(name)?.usageIn(frame)).toEqual(expected)
})

test.each([
  ['messages', { type: 'content_block_delta', delta: { type: 'text_delta', text: 'a' } }, false],
  ['responses', { type: 'response.audio.delta', delta: 'QQ==' }, true],
  ['responses', { type: 'response.image_generation_call.partial_image' }, true],
  ['responses', { type: 'response.output_item.done', item: { result: 'QQ==' } }, true],
  ['responses', { type: 'response.output_item.done', item: { type: 'message' } }, false],
  ['chat_completions', { choices: [{ delta: { audio: { data: 'QQ==' } } }] }, true],
  ['chat_completions', { choices: [{ delta: { images: [{}] } }] }, true],
  ['chat_completions', { choices: [{ delta: { content: 'a', images: [] } }] }, false],
])('%s: audio and images in %j are noticed', (name, frame, expected) => {
  expect(upstreamFormats.get(name)?.hasMedia?.(frame) ?? false).toBe(expected)
})

test('only the headers that choose versions and features are forwarded, and only single ones', () => {
  const sent = {
    'anthropic-version': '2023-06-01',
    'anthropic-beta': 'a,b',
    'openai-beta': ['x', 'y'],
    authorization: 'Bearer canary',
    cookie: 'canary',
  }
  for (const format of Object.values(callerFormats)) {
    expect(pickForwardedHeaders(format, sent)).toEqual({
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'a,b',
    })
  }
})

test('formats import nothing but formats, text, platform and the contract', () => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter(
    (file) => file.endsWith('.ts') && !/\.test\.ts$|(^|\/)testing\//.test(file),
  )
  expect(files.length).toBeGreaterThan(50)
  const allowed = /^(\.\/|#formats\/|#text\/|#platform\/|@gatehouse\/contract\/|node:buffer$)/
  const others = files.flatMap((file) => {
    const text = readFileSync(join(import.meta.dirname, file), 'utf8')
    return [...text.matchAll(/from '([^']+)'/g)]
      .map(([, specifier = '']) => specifier)
      .filter((specifier) => !allowed.test(specifier))
      .map((specifier) => `${file}: ${specifier}`)
  })
  expect(others).toEqual([])
})

test.each([...upstreamFormats.keys()])('%s: a request asks for a stream, or plainly', (name) => {
  const format = upstreamFormats.get(name)!
  const target = { model: 'm', maxOutputTokens: 9, outputLimitMember: 'max_tokens' } as const
  const sent = { stream_options: { include_obfuscation: false }, messages: [], input: [] }
  const requestsFor = (isPlain: boolean) => [
    format.writeRequest(emptyTurn, { ...target, isPlain }),
    format.forwardRequest?.(sent, { ...target, isPlain }),
  ]
  for (const request of requestsFor(true)) {
    expect(request).toMatchObject({ stream: false })
    if (name !== 'messages') expect(request).not.toHaveProperty('stream_options')
  }
  for (const request of requestsFor(false)) expect(request).toMatchObject({ stream: true })
  const [, forwarded] = requestsFor(false)
  expect(forwarded).toMatchObject({ stream_options: { include_obfuscation: false } })
})
