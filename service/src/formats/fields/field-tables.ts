import type { CallerFormatName } from '#formats/format-name.ts'

import { chatFields } from './chat-fields.ts'
import type { FieldTable } from './field-table.ts'
import { messageFields } from './message-fields.ts'
import { responseFields } from './response-fields.ts'

/**
 * By the format of the caller. The request itself reaches only upstreams of the same format: for others it is
 * rebuilt, and nothing of it passes that a `Turn` has no member for.
 */
export const fieldTables: Readonly<Record<CallerFormatName, FieldTable>> = {
  messages: messageFields,
  responses: responseFields,
  chat_completions: chatFields,
}
