/** Shows the console to whom the server knows, the sign-in page to everybody else. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { sessionQuery } from '../api/queries.ts'
import { Shown } from '../kit/page.tsx'
import { SignInScreen } from './sign-in-screen.tsx'

export function SignInGate({ children }: { readonly children: ReactNode }) {
  const session = useQuery(sessionQuery)
  return (
    <Shown read={session} what="the session">
      {({ signedIn, environment }) => (signedIn ? children : <SignInScreen environment={environment} />)}
    </Shown>
  )
}
