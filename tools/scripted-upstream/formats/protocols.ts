import type { Answer } from '../answer.ts'
import type { Ask, Dialect } from '../ask.ts'
import { dataFrame, namedFrame, type Failure, type Frame } from '../frame.ts'
import type { Json } from '../json.ts'
import { completionError, completionFrames, plainCompletion } from './chat.ts'
import { messageError, messageFrames, plainMessage } from './messages.ts'
import { plainResponse, responseErrorFrame, responseFrames } from './responses.ts'

/** How one vendor formats answers and errors. */
export type Protocol = {
  plain: (ask: Ask, answer: Answer) => Json
  frames: (ask: Ask, answer: Answer) => Frame[]
  errorBody: (failure: Failure) => Json
  /** The error event that ends a stream after the frames that were `sent`. */
  errorFrame: (failure: Failure, sent: readonly Frame[]) => Frame
  malformedFrame: string
  /** The vendor's own headers, not all of which a gateway may forward. */
  headers: Record<string, string>
  requestIdHeader: string
}

const openAiHeaders = {
  'openai-organization': 'scripted-organization',
  'openai-version': '2020-10-01',
  'x-ratelimit-limit-requests': '7777',
  'x-ratelimit-remaining-requests': '7776',
  'set-cookie': 'upstream=scripted; Path=/',
}

const messages: Protocol = {
  plain: plainMessage,
  frames: messageFrames,
  errorBody: messageError,
  errorFrame: (failure) => {
    const { error } = messageError(failure)
    return namedFrame('error', { error })
  },
  malformedFrame: 'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{\n\n',
  headers: {
    'anthropic-organization-id': 'scripted-organization',
    'anthropic-ratelimit-requests-limit': '7777',
    'anthropic-ratelimit-requests-remaining': '7776',
    'set-cookie': 'upstream=scripted; Path=/',
  },
  requestIdHeader: 'request-id',
}

const chat: Protocol = {
  plain: plainCompletion,
  frames: completionFrames,
  errorBody: completionError,
  errorFrame: (failure) => dataFrame(completionError(failure)),
  malformedFrame: 'data: {"id":"chatcmpl-scripted","choices":[{\n\n',
  headers: openAiHeaders,
  requestIdHeader: 'x-request-id',
}

const responses: Protocol = {
  plain: plainResponse,
  frames: responseFrames,
  errorBody: completionError,
  errorFrame: responseErrorFrame,
  malformedFrame:
    'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",\n\n',
  headers: openAiHeaders,
  requestIdHeader: 'x-request-id',
}

export const protocols: Record<Dialect, Protocol> = { messages, chat, responses }
