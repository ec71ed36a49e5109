package template

// fallback is the template of a model that has none: ChatML where the
// vocabulary knows its marks, else plain text with a label before each turn.
// Tools are described in words for both.
func fallback(chatML bool) string {
	if chatML {
		return chatMLTemplate
	}
	return labelledTemplate
}

const chatMLTemplate = `{%- for message in messages -%}
    {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\n' -}}
{%- endif -%}
`

const labelledTemplate = `{{- bos_token -}}
{%- for message in messages -%}
    {%- if message.role == 'system' -%}
        {{- message.content + '\n\n' -}}
    {%- elif message.role == 'user' -%}
        {{- 'User: ' + message.content + '\n' -}}
    {%- else -%}
        {{- 'Assistant: ' + message.content + '\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- 'Assistant:' -}}
{%- endif -%}
`
