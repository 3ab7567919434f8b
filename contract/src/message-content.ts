import { z } from 'zod'

import { AnyObject, listOf, Name, Text, textOr } from './inference-schema.ts'

const MediaType = z.string().max(200)

export const TextBlock = z.looseObject({ type: z.literal('text'), text: Text })

const base64Source = z.looseObject({
  type: z.literal('base64'),
  media_type: MediaType,
  data: Text,
})
const urlSource = z.looseObject({ type: z.literal('url'), url: Text })
const fileSource = z.looseObject({ type: z.literal('file'), file_id: Name })

const ImageBlock = z.looseObject({
  type: z.literal('image'),
  source: z.discriminatedUnion('type', [base64Source, urlSource, fileSource]),
})

const DocumentBlock = z.looseObject({
  type: z.literal('document'),
  source: z.discriminatedUnion('type', [
    base64Source,
    urlSource,
    fileSource,
    z.looseObject({ type: z.literal('text'), data: Text }),
    z.looseObject({
      type: z.literal('content'),
      content: textOr(listOf(z.discriminatedUnion('type', [TextBlock, ImageBlock]))),
    }),
  ]),
  title: Text.nullish(),
})

const SearchResultBlock = z.looseObject({
  type: z.literal('search_result'),
  source: Text,
  title: Text,
  content: listOf(TextBlock),
})

const ToolUseBlock = z.looseObject({
  type: z.literal('tool_use'),
  id: Name,
  name: Name,
  input: AnyObject,
})

/** Blocks of a tool result that only the model's own provider understands. */
const ToolReferenceBlock = z.looseObject({ type: z.enum(['tool_reference', 'browser_state']) })

const ToolResultBlock = z.looseObject({
  type: z.literal('tool_result'),
  tool_use_id: Name,
  content: textOr(
    listOf(
      z.discriminatedUnion('type', [
        TextBlock,
        ImageBlock,
        DocumentBlock,
        SearchResultBlock,
        ToolReferenceBlock,
      ]),
    ),
  ).optional(),
  is_error: z.boolean().nullish(),
})

const ThinkingBlock = z.looseObject({
  type: z.literal('thinking'),
  thinking: Text,
  signature: Text.optional(),
})

const RedactedThinkingBlock = z.looseObject({ type: z.literal('redacted_thinking'), data: Text })

/** Blocks of tools that the provider ran itself: passed to an upstream of this format, left out for others. */
const ProviderBlock = z.looseObject({
  type: z.enum([
    'server_tool_use',
    'web_search_tool_result',
    'web_fetch_tool_result',
    'code_execution_tool_result',
    'bash_code_execution_tool_result',
    'text_editor_code_execution_tool_result',
    'tool_search_tool_result',
    'advisor_tool_result',
    'mcp_tool_use',
    'mcp_tool_result',
    'mcp_tool_listing',
    'container_upload',
    'compaction',
    'fallback',
  ]),
})

export const ContentBlock = z.discriminatedUnion('type', [
  TextBlock,
  ImageBlock,
  DocumentBlock,
  SearchResultBlock,
  ToolUseBlock,
  ToolResultBlock,
  ThinkingBlock,
  RedactedThinkingBlock,
  ProviderBlock,
])
export type ContentBlock = z.infer<typeof ContentBlock>
