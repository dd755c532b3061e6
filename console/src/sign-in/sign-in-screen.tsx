/** Sign-in with a token. The server turns it into a cookie; the console keeps the token nowhere. */
import { Alert, Button, Center, Code, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { call, reasonOf } from '../api/call.ts'
import { sessionQuery } from '../api/queries.ts'
import type { Session } from '../api/types.ts'

export function SignInScreen() {
  const client = useQueryClient()
  const [token, setToken] = useState('')
  const signIn = useMutation({
    mutationFn: () => call<Session>('POST', '/api/session', { body: { token: token.trim() } }),
    onSuccess: (session) => {
      client.clear()
      client.setQueryData(sessionQuery.queryKey, session)
    },
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (token.trim() !== '') signIn.mutate()
  }
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p="xl" w="26rem" maw="100%">
        <form onSubmit={submit}>
          <Stack>
            <div>
              <Title order={1} size="h3">
                Bartleby
              </Title>
              <Text size="sm" c="var(--quiet)">
                The dead letter office for your messages.
              </Text>
            </div>
            <PasswordInput
              label="Token"
              description={
                <>
                  Made with <Code>bartleby token create</Code>. It becomes a cookie for twelve hours.
                </>
              }
              autoComplete="current-password"
              data-autofocus
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
            />
            {signIn.error !== null && (
              <Alert color="red" role="alert" title="Not signed in">
                {reasonOf(signIn.error)}
              </Alert>
            )}
            <Button type="submit" loading={signIn.isPending}>
              Sign in
            </Button>
          </Stack>
        </form>
      </Paper>
    </Center>
  )
}
