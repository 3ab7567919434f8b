import '#styles/tokens.css'
import '#styles/shell.css'
import '#styles/parts.css'
import '#styles/tables.css'
import '#styles/forms.css'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { Problem } from '#api/problem.ts'
import { applyTheme } from '#session/preferences.ts'
import { followSession } from '#session/session-state.ts'

import { App } from './app.tsx'

/** A refusal is the same the second time; an answer that did not come may come then. */
const shouldRetry = (failures: number, error: Error) =>
  failures < 2 && error instanceof Problem && (error.status === 0 || error.status >= 500)

const queries = new QueryClient({
  defaultOptions: { queries: { staleTime: 15_000, retry: shouldRetry, refetchOnMount: true } },
})

applyTheme()
followSession(queries)
const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <App />
      </QueryClientProvider>
    </StrictMode>,
  )
}
