/** Sign-in with a token. The server turns it into a cookie; the console keeps the token nowhere. */
import {
  Badge,
  Button,
  Center,
  Code,
  Group,
  Paper,
  PasswordInput,
  Stack,
  Text,
  Title,
  VisuallyHidden,
} from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useEffect, useRef, useState } from 'react'
import { CallFailure, call, reasonOf } from '../api/call.ts'
import { sessionQuery } from '../api/queries.ts'
import type { Environment, Session } from '../api/types.ts'

export function SignInScreen({ environment }: { readonly environment: Environment }) {
  const client = useQueryClient()
  const [token, setToken] = useState('')
  const field = useRef<HTMLInputElement>(null)
  const signIn = useMutation({
    mutationFn: () => call<Session>('POST', '/api/session', { body: { token: token.trim() } }),
    onSuccess: (session) => {
      // What was read as somebody else, or as nobody, is not theirs. The session itself is watched by the gate: it stays.
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionQuery.queryKey[0] })
      client.setQueryData(sessionQuery.queryKey, session)
    },
    // What was typed is wrong: the next keystroke replaces it.
    onError: () => field.current?.select(),
  })
  useEffect(() => {
    document.title = 'Sign in · Bartleby'
    field.current?.focus()
  }, [])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (token.trim() === '') field.current?.focus()
    else signIn.mutate()
  }
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p="xl" w="26rem" maw="100%">
        <form onSubmit={submit}>
          <Stack>
            <div>
              <Group justify="space-between">
                <Title order={1} size="h3">
                  Bartleby
                </Title>
                <Badge variant="dot" size="lg" color={environment.colour} className="environment">
                  <VisuallyHidden>Environment </VisuallyHidden>
                  {environment.name}
                </Badge>
              </Group>
              <Text size="sm" c="var(--quiet)">
                The dead letter office for your messages.
              </Text>
            </div>
            <PasswordInput
              ref={field}
              label="Token"
              description={
                <>
                  Made with <Code>bartleby token create</Code>. You stay signed in for twelve hours.
                </>
              }
              autoComplete="current-password"
              visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the token' }}
              value={token}
              onChange={(event) => {
                setToken(event.currentTarget.value)
                if (signIn.isError) signIn.reset()
              }}
              error={signIn.error === null ? undefined : <span role="alert">{whyNot(signIn.error)}</span>}
            />
            <Button type="submit" loading={signIn.isPending}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </Center>
  )
}

const whyNot = (error: Error): string =>
  error instanceof CallFailure && error.code === 'token_unknown'
    ? 'This server does not know that token. It may be of another server, or revoked; was all of it pasted?'
    : reasonOf(error)
