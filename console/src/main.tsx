/** The console starts here: what everything needs is put around the screens. */
// In a layer of their own, so that ours win whatever the order in which files are loaded.
import '@mantine/core/styles.layer.css'
import '@fontsource-variable/inter'
import './frame/frame.css'
import { MantineProvider } from '@mantine/core'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { CallFailure } from './api/call.ts'
import { sessionQuery } from './api/queries.ts'
import { styleNonce } from './frame/style-nonce.ts'
import { theme } from './frame/theme.ts'
import { KeyProvider } from './keys/keys.tsx'
import { router } from './router.tsx'
import { SignInGate } from './sign-in/sign-in-gate.tsx'
import { TimeProvider } from './time/time.tsx'
import { ToastProvider } from './toasts/toasts.tsx'

const RETRIES = 2

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // What the server refused, it will refuse again.
      retry: (failures, error) =>
        failures < RETRIES && !(error instanceof CallFailure && error.status >= 400 && error.status < 500),
    },
  },
})
// A session that ended shows up as 401 anywhere: the sign-in page follows.
queries.getQueryCache().subscribe(({ type, query }) => {
  if (type !== 'updated' || query.queryKey[0] === 'session') return
  if (query.state.error instanceof CallFailure && query.state.error.status === 401)
    void queries.invalidateQueries(sessionQuery)
})

const place = document.getElementById('console')
if (place === null) throw new Error('the page has no place for the console')

createRoot(place).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => styleNonce}>
      <QueryClientProvider client={queries}>
        <TimeProvider>
          <KeyProvider>
            <ToastProvider>
              <SignInGate>
                <RouterProvider router={router} />
              </SignInGate>
            </ToastProvider>
          </KeyProvider>
        </TimeProvider>
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
)
