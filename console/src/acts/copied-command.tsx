/** A command to be copied. It is shown too: where the browser gives no clipboard, it can be marked. */
import { Button, CopyButton } from '@mantine/core'

export function CopiedCommand({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div className="command">
      <pre className="bytes">{text}</pre>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="compact-xs" variant="default" onClick={copy} aria-label={`Copy ${label}`}>
            <span aria-live="polite">{copied ? 'Copied' : 'Copy'}</span>
          </Button>
        )}
      </CopyButton>
    </div>
  )
}
