import { type QueryKey, useMutation, useQueryClient } from '@tanstack/react-query'
import { useRef } from 'react'

import { call } from './call.ts'
import type { Answer, Input, OperationName } from './operations.ts'
import { Problem } from './problem.ts'

type Attempt = { text: string; key: string }

/**
 * A change that a person asks for. When it had no answer and the person tries again, it is sent with the same Idempotency-Key, so
 * that it is made once. The answer is not kept after the component is gone, because it may have a secret.
 */
export function useChange<Name extends OperationName>(
  name: Name,
  invalidates: readonly QueryKey[],
  onDone?: (answer: Answer<Name>) => void,
) {
  const queries = useQueryClient()
  const open = useRef<Attempt | null>(null)
  return useMutation<Answer<Name>, Error, Input<Name>>({
    gcTime: 0,
    async mutationFn(input) {
      const text = JSON.stringify(input)
      if (open.current?.text !== text) open.current = { text, key: crypto.randomUUID() }
      try {
        const answer = await call(name, input, { idempotencyKey: open.current.key })
        open.current = null
        return answer
      } catch (error) {
        if (!(error instanceof Problem && error.hasUnknownOutcome)) open.current = null
        throw error
      }
    },
    async onSuccess(answer) {
      onDone?.(answer)
      await Promise.all(invalidates.map((queryKey) => queries.invalidateQueries({ queryKey })))
    },
  })
}
